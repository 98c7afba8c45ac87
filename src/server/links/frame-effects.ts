/** Runs the effect of a frame for a connection, and replies with its outcome. */
import { Cause, Context, Effect, Option, References } from "effect"
import { type CodedError, Unavailable } from "#rpc/errors/codes"
import { Tenant } from "#server/platform/tenant"
import {
  type FrameData,
  type FramePayload,
  type FrameType,
  type Handler,
  refuse
} from "./frame-handler.ts"

/** A connection that runs work, which ends with it. */
interface WorkingConnection {
  readonly warn: (error: CodedError) => void
  readonly start: (effect: Effect.Effect<void>) => void
}

/** Makes a frame's work the root of a trace; changes nothing where tracing is off. */
export const traced = (
  context: Context.Context<never>,
  t: string
): (<A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E>) => {
  if (!Context.get(context, References.TracerEnabled)) return (work) => work
  const options = { kind: "server", root: true, captureStackTrace: false } as const
  return (work) => Effect.withSpan(work, `frame ${t}`, options)
}

/**
 * Runs effects with the services of a layer, and with the tenant of their fiber. Providing the
 * services would copy all of them for each of many short effects. With tracing, the effects also
 * need the span of the fiber.
 */
export const withServices = <Services>(
  services: Context.Context<Services>
): (<A, E>(work: Effect.Effect<A, E, Services>) => Effect.Effect<A, E>) => {
  if (Context.get(services, References.TracerEnabled)) {
    return (work) => Effect.provideContext(work, services)
  }
  const flat = Context.makeUnsafe<Services>(services.mapUnsafe)
  return (work) =>
    Effect.updateContext(work, (fiber: Context.Context<never>) =>
      Context.add(flat, Tenant, Context.get(fiber, Tenant))
    )
}

/**
 * Converts an effect to a handler. An interrupted effect has no reply, since its connection is
 * closed.
 */
export const replyWith = <Services>(services: Context.Context<Services>) => {
  const provide = withServices(services)
  return <T extends FrameType, Connection extends WorkingConnection>(
    t: T,
    effect: (
      connection: Connection,
      payload: FramePayload<T>
    ) => Effect.Effect<FrameData<T>, CodedError, Services>
  ): Handler<T, Connection> => {
    const asTrace = traced(services, t)
    return (connection, payload, onReply) =>
      connection.start(
        asTrace(provide(effect(connection, payload))).pipe(
          Effect.tapDefect((defect) => Effect.logError("Failed to handle a frame", defect)),
          Effect.matchCause({
            onSuccess: (data) => onReply?.({ ok: true, data }),
            onFailure: (cause) => {
              if (Cause.hasInterruptsOnly(cause)) return
              const error = Option.getOrElse(
                Cause.findErrorOption(cause),
                (): CodedError => new Unavailable()
              )
              refuse(connection, onReply, error)
            }
          })
        )
      )
  }
}
