// Reads cases from standard input, a line each, and says of each whether the guide's code believes it.

for (const line of require("node:fs").readFileSync(0, "utf8").trim().split("\n")) {
  const [secret, id, timestamp, signature, body] = line.split("\t");
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature };
  console.log(isGenuine(secret, headers, Buffer.from(body, "hex")));
}
