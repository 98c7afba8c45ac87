/** How a frame is answered: a refusal at once, an effect when it is done. */
import { Cause, Context, Effect, Option, References } from "effect"
import { type CodedError, PayloadTooLarge, Unavailable } from "#rpc/errors/codes"
import { jsonBytes } from "#entities/room/json-state"
import type { ReplyCallback } from "./entity-link.ts"
import type { FrameData, FramePayload, FrameType, Handler } from "./frames.ts"

/** A connection that can be warned. */
interface Warned {
  readonly warn: (error: CodedError) => void
}

/** A connection that work can end with. */
interface Working extends Warned {
  readonly start: (effect: Effect.Effect<void>) => void
}

/** Says no; a frame without `rid` gets a warning. */
export const refuse = (
  connection: Warned,
  answered: ReplyCallback<never> | undefined,
  error: CodedError
): void => {
  if (answered === undefined) connection.warn(error)
  else answered({ ok: false, error })
}

/** Does the data of the frame being handled take more bytes than it may? */
export const oversized = (
  { currentFrameBytes }: { readonly currentFrameBytes: number },
  data: unknown,
  limit: number
): PayloadTooLarge | undefined =>
  currentFrameBytes > limit && jsonBytes(data) > limit
    ? new PayloadTooLarge({ details: { limit } })
    : undefined

/** A frame's work as the root of a trace; as it stands where nothing is traced. */
export const traced = (
  context: Context.Context<never>,
  t: string
): (<A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E>) => {
  if (!Context.get(context, References.TracerEnabled)) return (work) => work
  const options = { kind: "server", root: true, captureStackTrace: false } as const
  return (work) => Effect.withSpan(work, `frame ${t}`, options)
}

/** Runs an effect for a connection and answers with its outcome. */
export const replyWith =
  <Services>(services: Context.Context<Services>) =>
  <T extends FrameType, Connection extends Working>(
    t: T,
    effect: (
      connection: Connection,
      payload: FramePayload<T>
    ) => Effect.Effect<FrameData<T>, CodedError, Services>
  ): Handler<T, Connection> => {
    const asTrace = traced(services, t)
    return (connection, payload, answered) =>
      connection.start(
        asTrace(Effect.provideContext(effect(connection, payload), services)).pipe(
          Effect.tapDefect((defect) => Effect.logError("A frame failed", defect)),
          Effect.matchCause({
            onSuccess: (data) => answered?.({ ok: true, data }),
            onFailure: (cause) => {
              const error = Option.getOrElse(
                Cause.findErrorOption(cause),
                (): CodedError => new Unavailable()
              )
              if (!Cause.hasInterruptsOnly(cause)) refuse(connection, answered, error)
            }
          })
        )
      )
  }
