/** What one runner says to another about a call that it passes on. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http"
import { Schema } from "effect"
import { EnvironmentId } from "#rpc/ids"

/** A request of a client. */
const Forwarded = Schema.Struct({
  environmentId: EnvironmentId,
  mount: Schema.Literals(["service", "app"]),
  url: Schema.String,
  clientAddress: Schema.String,
  playerId: Schema.optionalKey(Schema.String)
})
export type Forwarded = typeof Forwarded.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Forwarded))
const isEnvironmentId = Schema.is(EnvironmentId)

/** Headers that reach no function: no client can send them. */
const names = {
  forwarded: "x-svc-forwarded",
  environment: "x-svc-environment",
  moved: "x-svc-moved"
} as const

/** Where requests of clients and operations of the service arrive. */
export const paths = { request: "/request", operation: "/operation" } as const

export const forwardedHeader = (forwarded: Forwarded): OutgoingHttpHeaders => ({
  [names.forwarded]: Buffer.from(JSON.stringify(forwarded)).toString("base64url")
})

export const readForwarded = (headers: IncomingHttpHeaders): Forwarded | undefined => {
  const text = headers[names.forwarded]
  if (typeof text !== "string") return undefined
  const decoded = decode(Buffer.from(text, "base64url").toString())
  return decoded._tag === "Some" ? decoded.value : undefined
}

/** The environment of an operation. */
export const environmentHeader = (environmentId: EnvironmentId): OutgoingHttpHeaders => ({
  [names.environment]: environmentId
})

export const readEnvironment = (headers: IncomingHttpHeaders): EnvironmentId | undefined => {
  const text = headers[names.environment]
  return isEnvironmentId(text) ? text : undefined
}

/** The status of a runner that does not have the environment: nothing has begun. */
const movedStatus = 421

export const movedAnswer = [movedStatus, { [names.moved]: "1", "content-length": "0" }] as const

export const isMoved = ({ headers, statusCode }: IncomingMessageHead): boolean =>
  statusCode === movedStatus && headers[names.moved] === "1"

interface IncomingMessageHead {
  readonly headers: IncomingHttpHeaders
  readonly statusCode?: number | undefined
}
