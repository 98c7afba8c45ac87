/** Reads metrics of a running service. */
import { Effect } from "effect"
import { request } from "#testing/players"

/** The sum over all labels of a metric, in the text of `GET /metrics`. */
export const metricOf = (text: string, name: string): number =>
  text
    .split("\n")
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0)

/** Reads a metric of the service at a URL. */
export const readMetric = (url: string, name: string): Effect.Effect<number> =>
  Effect.map(request(`${url}/metrics`), ({ body }) => metricOf(String(body), name))
