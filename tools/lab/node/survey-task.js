// What the Node programs of the survey share: arguments, how to log in, records, when to end.

const { readFileSync } = require("node:fs");

const [SERVERS, SCENARIO, TOPIC, GROUP] = process.argv.slice(2);

// How to log in, and the certificate to trust; undefined without.
const { LAB_MECHANISM: MECHANISM, LAB_TOKEN: TOKEN, LAB_TRUST } = process.env;
const TRUST = LAB_TRUST ? { ca: [readFileSync(LAB_TRUST, "utf8")] } : undefined;

const orders = (count, words = 12) => Array.from({ length: count }, (_, n) => ({
  key: `customer-${n % 7}`, value: `order ${n}: ${"teacup ".repeat(words)}`,
}));

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Its `now` is true once standard input has ended.
function inputEnds() {
  const ended = { now: false };
  process.stdin.on("end", () => { ended.now = true; });
  process.stdin.resume();
  return ended;
}

// Says what a client told its application.
function told(what, said) {
  console.error(`${what}: ${said instanceof Error ? `${said.name}: ${said.message}` : said}`.replaceAll("\n", " "));
}

// Waits for a promise of a record's delivery, for so long; returns whether it was delivered.
async function delivered(promise) {
  try {
    await Promise.race([promise, sleep(150_000).then(() => { throw new Error("no answer"); })]);
    return true;
  } catch (error) {
    told("not delivered", error);
    return false;
  }
}

// Waits for an error, for so long; fails without one.
async function refused(login, giveUpMs) {
  const outcome = await Promise.race([
    login.then(() => "done", (error) => error),
    sleep(giveUpMs).then(() => "no answer"),
  ]);
  if (outcome === "done") throw new Error("not refused");
  console.error(String(outcome));
}

module.exports = { ALICE: "alice", WRONG: "not-her-secret", SECRET: "alice-secret", GIVE_UP_MS: 8000, GROUP, MECHANISM, SCENARIO, SERVERS, TOKEN, TOPIC, TRUST, delivered, inputEnds, orders, refused, sleep, told };
