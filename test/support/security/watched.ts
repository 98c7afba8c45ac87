/**
 * Records the work of a request: traced methods, SQL statements and password hashes, in order. Two requests
 * with the same work take the same time on any machine.
 */
import { Context, Effect, Layer, Option, Tracer } from "effect"
import type { TestResponse } from "#testing/players"

type Headers = Readonly<Record<string, string>>

class Spans extends Context.Service<Spans, Array<Tracer.Span>>()(
  "test/support/security/watched/Spans"
) {}

/** Records every span of a node. */
export const SpanRecorderLive = Layer.effectContext(
  Effect.sync(() => {
    const spans: Array<Tracer.Span> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    return Context.make(Spans, spans).pipe(Context.add(Tracer.Tracer, tracer))
  })
)

const traceOf = (number: number) => number.toString(16).padStart(32, "0")

/** The response to a request and the work it caused. `ask` must send the given trace headers. */
export const workOf = Effect.fnUntraced(function* <E, R>(
  ask: (headers: Headers) => Effect.Effect<TestResponse, E, R>
) {
  const spans = yield* Spans
  const traceId = traceOf(spans.length + 1)
  const answer = yield* ask({ traceparent: `00-${traceId}-b7ad6b7169203331-01` })
  const steps = spans
    .filter((span) => span.traceId === traceId && Option.isSome(span.parent))
    .map(({ attributes, name }) => String(attributes.get("db.query.text") ?? name))
  const passwords = steps.filter((step) => step === "Passwords.derive").length
  return { answer, passwords, steps }
})
