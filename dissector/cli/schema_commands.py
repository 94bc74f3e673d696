"""`kdissect schema`: releases of Kafka imported, listed, removed and compared."""

from typing import Annotated

import typer

from dissector.cli.command import command, examples

schema = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Import, list, remove and compare schemas of Kafka releases.",
    epilog=examples({"a release that is newer than this program": "kdissect schema import kafka-clients-4.5.0.jar"}),
)


@command(
    schema,
    "import",
    epilog=examples({"a release that is newer than this program": "kdissect schema import kafka-clients-4.5.0.jar"}),
)
def schema_import(
    jars: Annotated[
        list[str],
        typer.Argument(metavar="JAR|FOLDER…", help="Jars of one release, kafka-clients first; or a folder of them."),
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the release; by default from the jar.")
    ] = None,
) -> int:
    """Import a release; its new messages are decoded from then on."""
    from dissector.cli.schema import import_release as run

    return run(jars, name)


@command(schema, "list", epilog=examples({"which releases are known": "kdissect schema list"}))
def schema_list() -> int:
    """List the known releases, shipped and imported."""
    from dissector.cli.schema import list_releases as run

    return run()


@command(schema, "remove", epilog=examples({"forget a release": "kdissect schema remove 4.5.0"}))
def schema_remove(name: Annotated[str, typer.Argument(metavar="NAME", help="An imported release.")]) -> int:
    """Remove an imported release."""
    from dissector.cli.schema import remove_release as run

    return run(name)


@command(
    schema,
    "diff",
    epilog=examples(
        {
            "what changed between two releases": "kdissect schema diff 3.9.2 4.4.0",
            "what a jar adds to a release": "kdissect schema diff 4.4.0 kafka-clients-4.5.0.jar",
        }
    ),
)
def schema_diff(
    one: Annotated[str, typer.Argument(metavar="A", help="A jar, or a known release.")],
    other: Annotated[str, typer.Argument(metavar="B", help="Another jar or release.")],
) -> int:
    """Compare two releases. Exit code 0 if they are the same, 1 if they differ."""
    from dissector.cli.schema import diff_releases as run

    return run(one, other)
