/** Requests whose client draws out the body, for tests of what happens meanwhile. */
import { request as send } from "node:http"
import { Effect } from "effect"

export type Headers = Readonly<Record<string, string>>

/** Bytes of the body that come first. */
const firstBytes = 9

/** A request whose body the service has begun to read; `finish` sends the rest of it. */
export const begin = (url: string, method: string, credentials: Headers, body: string) =>
  Effect.callback<{
    readonly finish: Effect.Effect<void>
    readonly outcome: Effect.Effect<number | "cut">
  }>((resume) => {
    const headers = {
      ...credentials,
      "content-type": "application/json",
      "content-length": `${Buffer.byteLength(body)}`,
      expect: "100-continue"
    }
    const sent = send(url, { method, headers })
    const outcome = new Promise<number | "cut">((resolve) => {
      sent.on("error", () => resolve("cut"))
      sent.on("response", (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      })
    })
    sent.on("continue", () => {
      sent.write(body.slice(0, firstBytes))
      const finish = Effect.sync(() => void sent.end(body.slice(firstBytes)))
      resume(Effect.succeed({ finish, outcome: Effect.promise(() => outcome) }))
    })
    sent.flushHeaders()
  })
