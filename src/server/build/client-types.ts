/**
 * Types of the client, printed from the definitions in `rpc/` into `src/client/wire.ts`: the values, the
 * endpoints for players, the frames and events of the socket, and the details of errors. The client then
 * needs neither the definitions nor `effect`, and a change of the definitions shows in a diff.
 */
import { Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { AgeBand, AgeSignal } from "#rpc/ages"
import { Api } from "#rpc/api"
import {
  ChannelEvent,
  ChannelPlayer,
  ChannelSettings,
  ChannelVoice,
  ModerateOp,
  Moderation
} from "#rpc/channels/frames"
import { codesOf } from "#rpc/asyncapi"
import { VoteOp } from "#rpc/config-document/authority"
import * as codes from "#rpc/errors/codes"
import { FunctionCpuExceeded, FunctionsSuspended } from "#rpc/errors/functions"
import { Method, Provider } from "#rpc/identities"
import { NativeProvider, NativeRequest, SignInError, SignInMode } from "#rpc/oauth/sign-in"
import { IceServer, IceServers, IceTransportPolicy } from "#rpc/peers"
import { itemsOf, pascalCase, refName } from "#rpc/openapi/json"
import { ClientFrames, EventsError, HeldSeat, Warn, Welcome } from "#rpc/realtime"
import { RoomEvent, RoomPlayer, RoomSnapshot, SignalKind } from "#rpc/rooms/events"
import { OpenVote, RoomModerateOp, RoomTeam } from "#rpc/rooms/authority"
import { RoomRef } from "#rpc/rooms/frames"
import { VoiceEvent, VoiceMember } from "#rpc/voice"
import { TypePrinter } from "./type-text.ts"

/** Values that the client exports by name, inner ones first. */
const values = {
  Provider,
  Method,
  NativeProvider,
  NativeRequest,
  SignInMode,
  SignInError,
  AgeBand,
  AgeSignal,
  SignalKind,
  VoteOp,
  RoomModerateOp,
  RoomTeam,
  OpenVote,
  RoomRef,
  RoomPlayer,
  RoomSnapshot,
  RoomEvent,
  ChannelVoice,
  ChannelPlayer,
  ChannelSettings,
  ModerateOp,
  Moderation,
  ChannelEvent,
  VoiceMember,
  VoiceEvent,
  IceTransportPolicy,
  IceServer,
  IceServers,
  HeldSeat,
  Welcome,
  Warn
} satisfies Readonly<Record<string, Schema.Constraint>>

type Json = Readonly<Record<string, unknown>>

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null

const at = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((inner, key) => (isJson(inner) ? inner[key] : undefined), value)

const entries = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  isJson(value) ? Object.entries(value) : []

const block = (name: string, members: ReadonlyArray<string>): string =>
  `export interface ${name} {\n  ${members.map((member) => member.replaceAll("\n", "\n  ")).join("\n  ")}\n}\n`

const printed = (printer: TypePrinter, schema: Schema.Constraint): string => {
  const document = Schema.toJsonSchemaDocument(schema)
  printer.define(document.definitions)
  return printer.type(document.schema)
}

const json = "application/json"

/** An operation that a publishable key may call, with or without a player. */
const isForPlayers = (operation: unknown): boolean => {
  const security = at(operation, "security")
  return (
    Array.isArray(security) &&
    security.some((needed) => isJson(needed) && "publishableKey" in needed)
  )
}

const responseOf = (printer: TypePrinter, operation: unknown): string => {
  const successes = entries(at(operation, "responses")).filter(([status]) => status.startsWith("2"))
  const schema = successes.map(([, response]) => at(response, "content", json, "schema"))[0]
  return schema === undefined ? "undefined" : printer.type(schema)
}

const endpoint = (printer: TypePrinter, operation: unknown): ReadonlyArray<string> => {
  const parameters = at(operation, "parameters")
  const named = (place: string): ReadonlyArray<string> =>
    (Array.isArray(parameters) ? parameters : [])
      .filter((parameter) => at(parameter, "in") === place)
      .map((parameter) => {
        const optional = at(parameter, "required") === true ? "" : "?"
        // Texts on the wire may be numbers for the caller.
        const type = place === "query" ? "string | number" : "string"
        return `readonly ${String(at(parameter, "name"))}${optional}: ${type}`
      })
  const params = named("path")
  const query = named("query")
  const body = at(operation, "requestBody", "content", json, "schema")
  return [
    ...(params.length === 0 ? [] : [`readonly params: { ${params.join("; ")} }`]),
    ...(query.length === 0 ? [] : [`readonly query: { ${query.join("; ")} }`]),
    ...(body === undefined ? [] : [`readonly body: ${printer.type(body)}`]),
    `readonly response: ${responseOf(printer, operation)}`
  ]
}

/** `METHOD /path` of each endpoint for players, with its operation. */
const playerOperations = (document: unknown): ReadonlyArray<readonly [string, unknown]> =>
  entries(at(document, "paths")).flatMap(([path, methods]) =>
    entries(methods)
      .filter(([, operation]) => isForPlayers(operation))
      .map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const)
  )

/** `METHOD /path` of each endpoint for players. */
export const playerEndpoints = (): ReadonlyArray<string> =>
  playerOperations(OpenApi.fromApi(Api)).map(([route]) => route)

const endpointsText = (printer: TypePrinter): string => {
  const document = OpenApi.fromApi(Api)
  printer.define(document.components.schemas)
  const members = playerOperations(document).map(
    ([route, operation]) =>
      `readonly ${JSON.stringify(route)}: {\n  ${endpoint(printer, operation)
        .map((member) => member.replaceAll("\n", "\n  "))
        .join("\n  ")}\n}`
  )
  const described =
    "/** The endpoints that a publishable key may call, with or without a player. */"
  return `${described}\n${block("Endpoints", members)}`
}

const framesText = (printer: TypePrinter): string => {
  const members = Array.from(ClientFrames.requests.values(), (frame) => {
    const payload = printed(printer, frame.payloadSchema)
    const fields = payload.startsWith("{") || /^[A-Z]\w+$/.test(payload) ? payload : "undefined"
    const data = printed(printer, frame.successSchema)
    return `readonly ${frame._tag}: {\n  readonly payload: ${indent(fields)}\n  readonly data: ${indent(data)}\n}`
  })
  return `/** The frames of the client: what it sends, and the data of the reply. */\n${block("Frames", members)}`
}

const indent = (text: string): string => text.replaceAll("\n", "\n  ")

const isErrorClass = (
  value: unknown
): value is { readonly fields: Schema.Struct.Fields; readonly identifier: string } =>
  typeof value === "function" && "fields" in value && "identifier" in value

/** The component of an error code in the OpenAPI document. */
const componentOf = (code: string): string => {
  const name = pascalCase(code)
  return name.endsWith("Error") ? name : `${name}Error`
}

/** The components of the errors that an operation answers. */
const errorsOf = (operation: unknown): ReadonlyArray<string> =>
  entries(at(operation, "responses")).flatMap(([, response]) => {
    const schema = at(response, "content", json, "schema")
    return [schema, ...itemsOf(at(schema, "anyOf"))].flatMap((one) => refName(one) ?? [])
  })

/** Components of errors that only calls of developers and servers answer: they are no part of the client. */
const foreignErrors = (document: unknown): ReadonlySet<string> => {
  const all = entries(at(document, "paths")).flatMap(([, methods]) => entries(methods))
  const own = new Set(playerOperations(document).flatMap(([, operation]) => errorsOf(operation)))
  const foreign = all
    .filter(([, operation]) => !isForPlayers(operation))
    .flatMap(([, operation]) => errorsOf(operation))
  return new Set(foreign.filter((name) => !own.has(name)))
}

/** Codes of frames, and of functions of the game, whose endpoints are not in the definitions. */
const ownCodes = (): ReadonlySet<string> => {
  const frames = Array.from(ClientFrames.requests.values(), (frame) => frame.errorSchema)
  const ofFrames = [EventsError, ...frames].flatMap(({ ast }) => codesOf(ast))
  return new Set([...ofFrames, FunctionCpuExceeded.identifier, FunctionsSuspended.identifier])
}

const errorsText = (printer: TypePrinter): string => {
  const foreign = foreignErrors(OpenApi.fromApi(Api))
  const own = ownCodes()
  const members = Object.values<unknown>(codes)
    .filter(isErrorClass)
    .filter(({ identifier }) => own.has(identifier) || !foreign.has(componentOf(identifier)))
    .map(({ fields, identifier }) => {
      const details = fields["details"]
      return `readonly ${identifier}: ${details === undefined ? "undefined" : printed(printer, details)}`
    })
  const described = "/** The error codes that calls of players get, with their details. */"
  return `${described}\n${block("ErrorDetails", members.toSorted())}`
}

const jsonObject = `/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>
`

/** The module `src/client/wire.ts`. */
export const clientTypesText = (): string => {
  const printer = new TypePrinter()
  for (const [name, schema] of Object.entries(values)) {
    const document = Schema.toJsonSchemaDocument(schema)
    printer.define(document.definitions)
    printer.name(name, document.schema)
  }
  const groups = [endpointsText(printer), framesText(printer), errorsText(printer)]
  const named = Array.from(printer.declarations().values())
  return [
    "/** Types of the wire, generated from the definitions in `rpc/` by `npm run generate`. */\n",
    jsonObject,
    ...named,
    ...groups
  ].join("\n")
}
