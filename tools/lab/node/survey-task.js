// What the Node programs of the survey share: arguments, records, when to end.

const [SERVERS, SCENARIO, TOPIC, GROUP] = process.argv.slice(2);

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

// Waits for an error, for so long; fails without one.
async function refused(login, giveUpMs) {
  const outcome = await Promise.race([
    login.then(() => "done", (error) => error),
    sleep(giveUpMs).then(() => "no answer"),
  ]);
  if (outcome === "done") throw new Error("not refused");
  console.error(String(outcome));
}

module.exports = { ALICE: "alice", WRONG: "not-her-secret", GIVE_UP_MS: 8000, GROUP, SCENARIO, SERVERS, TOPIC, inputEnds, orders, refused, sleep };
