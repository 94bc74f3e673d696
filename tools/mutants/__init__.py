"""Mutation testing: small mistakes are put into a package one by one, and its quick tests are to notice each of them.

`mutations.py` makes the mistakes, `running.py` runs the tests that reach them in forks of one pytest, `equivalent.toml`
lists those that make no difference, each with its reason. ``make mutants PACKAGE=transport``.

Neither mutmut (3.8) nor cosmic-ray (8.7) serves: mutmut leaves module-level constants alone, copies the whole tree, and
knows which function a test calls but not which line; cosmic-ray starts pytest anew for each mutant, and most of such a
run is imports.
"""
