// Uses the generated client: publishes an event that dies, finds it among the dead letters and replays it.

import { createInterface } from "node:readline";

import {
  Configuration,
  DeadLettersApi,
  DeliveriesApi,
  EndpointsApi,
  EventsApi,
  Problem,
  ResponseError,
} from "./hookline";

const account = "typescript-fetch";
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function wait(): Promise<void> {
  console.log("waiting");
  await lines.next();
}

async function main(): Promise<void> {
  const configuration = new Configuration({
    basePath: process.env.HOOKLINE_URL,
    accessToken: process.env.HOOKLINE_API_KEY,
  });
  const events = new EventsApi(configuration);
  const deadLetters = new DeadLettersApi(configuration);

  const endpoint = await new EndpointsApi(configuration).createEndpoint({
    endpointInput: { url: process.env.RECEIVER_URL!, events: ["order.*"], account },
  });
  const publication = { type: "order.paid", payload: { order: 42 }, account };
  const published = await events.publishEvent({ publication, idempotencyKey: "typescript-1" });
  const again = await events.publishEvent({ publication, idempotencyKey: "typescript-1" });
  await wait(); // until it is dead

  const listed = await events.listEventDeliveries({ eventId: published.id });
  const dead = await deadLetters.listDeadLetters({ account });
  const letter = dead.data[0];
  const replayed = await deadLetters.replayDeadLetter({ deliveryId: letter.id });
  await wait(); // until it is delivered

  const delivery = await new DeliveriesApi(configuration).getDelivery({ deliveryId: letter.id });
  const wrong = { type: "not a type", payload: 1 };
  const refusal = await events.publishEvent({ publication: wrong }).catch((error: ResponseError) => error);
  const problem: Problem = await (refusal as ResponseError).response.json();

  console.log(
    JSON.stringify({
      secret: endpoint.secret!.slice(0, 6),
      deliveries: published.deliveries,
      duplicate: [published.duplicate, again.duplicate],
      listed: listed.data.length,
      died: [letter.state, letter.reason, letter.lastStatus],
      replayed: replayed.state,
      "in the end": delivery.state,
      "at the last": delivery.deliveredAt instanceof Date,
      refused: [problem.code, problem.errors[0].pointer],
    }),
  );
  process.exit();
}

main();
