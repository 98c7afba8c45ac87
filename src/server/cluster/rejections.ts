/** Log of connections between runners that were not established, bounded in its rate. */
import { Effect } from "effect"
import { readings } from "#server/platform/metrics"
import type { HandshakeError } from "./handshake.ts"

const quietMillis = 60_000

/**
 * Whether the failure is ordinary: something probes the port, or a runner has just gone. Nobody
 * needs to act.
 */
const isOrdinary = ({ reason }: HandshakeError): boolean =>
  reason === "empty" || reason === "unlisted"

/**
 * Returns a function that logs a rejection. For each subject and reason it writes one line at once, and
 * a minute later one with the number of those that followed.
 */
export const makeRejections = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const { counter } = yield* readings
  /** Rejections since the last line. */
  const later = new Map<string, number>()
  let total = 0
  counter(
    "svc_runner_connections_rejected_total",
    "Connections between runners that were not established, in either direction.",
    () => total
  )

  return (subject: string, error: HandshakeError, from: string) =>
    Effect.suspend(() => {
      total += 1
      // Two releases refuse each other in both directions, for one reason.
      const key = error.reason === "version" ? error.message : `${subject} ${error.reason}`
      const count = later.get(key)
      if (count !== undefined) {
        later.set(key, count + 1)
        return Effect.void
      }
      later.set(key, 0)
      const log = (...line: ReadonlyArray<unknown>) =>
        (isOrdinary(error) ? Effect.logInfo(...line) : Effect.logWarning(...line)).pipe(
          Effect.annotateLogs({ runner: from, reason: error.reason })
        )
      const summary = Effect.suspend(() => {
        const further = later.get(key) ?? 0
        later.delete(key)
        return further === 0 ? Effect.void : log(`${subject}, ${further} more times`)
      })
      return Effect.andThen(
        log(subject, error.message),
        Effect.forkIn(Effect.delay(summary, quietMillis), scope)
      )
    })
})
