// Asks, and reads the server's events from the answer as they come.
import { api, headers, refusal } from "./bench.js";

/** Yields `[name, data]` of each event. Errors: Refused where nothing was asked. */
export async function* ask(body) {
  const answer = await fetch(`${api}ask`, { method: "POST", headers: { ...headers, Accept: "text/event-stream" }, body: JSON.stringify(body) });
  if (!answer.ok) throw await refusal(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      let name = "";
      const data = [];
      for (const line of event.split("\n")) {
        if (line.startsWith("event:")) name = line.slice(6).trim();
        else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      }
      if (data.length) yield [name, JSON.parse(data.join("\n"))];
    }
  }
}
