/** Protocol between runners for a forwarded call. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http"
import { Schema } from "effect"
import { EnvironmentId } from "#rpc/ids"

/** Client request in forwarded form. */
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

/** Names of headers between runners. Clients cannot send them, and functions do not receive them. */
const names = {
  forwarded: "x-svc-forwarded",
  environment: "x-svc-environment",
  moved: "x-svc-moved"
} as const

/** Paths of forwarded client requests and of operations. */
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

/** Header with the environment of an operation. */
export const environmentHeader = (environmentId: EnvironmentId): OutgoingHttpHeaders => ({
  [names.environment]: environmentId
})

export const readEnvironment = (headers: IncomingHttpHeaders): EnvironmentId | undefined => {
  const text = headers[names.environment]
  return isEnvironmentId(text) ? text : undefined
}

/** Status of a runner that does not have the environment. The call has not begun. */
const movedStatus = 421

export const movedAnswer = [movedStatus, { [names.moved]: "1", "content-length": "0" }] as const

export const isMoved = ({ headers, statusCode }: IncomingMessageHead): boolean =>
  statusCode === movedStatus && headers[names.moved] === "1"

interface IncomingMessageHead {
  readonly headers: IncomingHttpHeaders
  readonly statusCode?: number | undefined
}
