/**
 * Authentication of each call that one runner passes to another: what it is and whose it is, with an HMAC
 * under a key of the cluster. A position on an authenticated connection proves nothing. A call names the
 * process of its sender and that of its receiver, by ids that each start draws, and has a number. So a
 * recorded call is refused, and clocks do not matter. A sender learns the id of a receiver from its response
 * to a first call, which has not begun then.
 */
import {
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
  timingSafeEqual
} from "node:crypto"
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http"
import { Schema } from "effect"
import { functionLeases } from "#rpc/functions/runtime-limits"
import { EnvironmentId } from "#rpc/ids"
import { type Framing, framingOf } from "../host/framing.ts"
import { UsedNumbers } from "../host/used-numbers.ts"

/** What a client has asked for. */
const Forwarded = Schema.Struct({
  mount: Schema.Literals(["service", "app"]),
  url: Schema.String,
  clientAddress: Schema.String,
  playerId: Schema.optionalKey(Schema.String)
})

/** What a runner says about a call that it passes on. */
const RunnerCall = Schema.Struct({
  environmentId: EnvironmentId,
  /** Set for the request of a client. */
  forwarded: Schema.optionalKey(Forwarded),
  /** SHA-256 of the body of an operation. */
  digest: Schema.optionalKey(Schema.String)
})
export type RunnerCall = typeof RunnerCall.Type

const Sealed = Schema.fromJsonString(
  Schema.Struct({
    ...RunnerCall.fields,
    from: Schema.String,
    to: Schema.String,
    number: Schema.Int,
    method: Schema.String,
    path: Schema.String,
    framing: Schema.String
  })
)
const decode = Schema.decodeUnknownOption(Sealed)

const names = { call: "x-svc-runner-call", macs: "x-svc-mac" } as const

/** A call, with the request that carries it. */
export interface SealedCall extends RunnerCall {
  readonly method: string
  readonly path: string
  readonly framing: Framing
}

/** Verdict on a call: taken, for another process than this one, or not of the cluster or used before. */
export type Opened =
  | { readonly kind: "taken"; readonly call: RunnerCall }
  | { readonly kind: "elsewhere" }
  | { readonly kind: "refused" }

const refused: Opened = { kind: "refused" }
const idBytes = 16

const makeId = (): string => randomBytes(idBytes).toString("base64url")

export class CallSeal {
  readonly #keys: ReadonlyArray<KeyObject>
  readonly #self = makeId()
  readonly #senders = new Map<string, UsedNumbers>()
  /** Id of this process as a receiver. */
  #receiver = makeId()
  #last = 0

  /** Takes the keys of the cluster, newest first. While a key is replaced, runners have several. */
  constructor(keys: ReadonlyArray<Uint8Array>) {
    this.#keys = keys.map((key) => createSecretKey(key))
  }

  /** Id by which senders have to name this process. */
  get receiver(): string {
    return this.#receiver
  }

  #macs(text: string): ReadonlyArray<Buffer> {
    return this.#keys.map((key) => createHmac("sha256", key).update(text).digest())
  }

  /** Returns the headers of a call to the process `to`. */
  headersOf(to: string, call: SealedCall): OutgoingHttpHeaders {
    const sealed = { from: this.#self, to, number: (this.#last += 1), ...call }
    const text = Buffer.from(JSON.stringify(sealed)).toString("base64url")
    const macs = this.#macs(text).map((mac) => mac.toString("base64url"))
    return { [names.call]: text, [names.macs]: macs.join(" ") }
  }

  /** Reads a call from another runner. A call is taken once. */
  open(request: IncomingMessage): Opened {
    const text = textOf(request.headers, names.call)
    const given = textOf(request.headers, names.macs).split(" ").map(bytesOf)
    const isOfCluster = this.#macs(text).some((mac) =>
      given.some((one) => one.length === mac.length && timingSafeEqual(one, mac))
    )
    if (!isOfCluster) return refused
    const decoded = decode(bytesOf(text).toString())
    if (decoded._tag === "None") return refused
    const { from, framing, method, number, path, to, ...call } = decoded.value
    if (to !== this.#receiver) return { kind: "elsewhere" }
    const isSame =
      method === request.method && path === request.url && framing === framingOf(request)
    if (!isSame) return refused
    const used = this.#usedBy(from)
    if (used === undefined) return { kind: "elsewhere" }
    return used.use(number) ? { kind: "taken", call } : refused
  }

  /** Returns the numbers of a sender; undefined if this process has just taken another id. */
  #usedBy(from: string): UsedNumbers | undefined {
    const known = this.#senders.get(from)
    if (known !== undefined) return known
    if (this.#senders.size >= functionLeases.sendersRemembered) {
      // Calls of senders that are forgotten must not be taken again. The caller learns the new id.
      this.#senders.clear()
      this.#receiver = makeId()
      return undefined
    }
    const used = new UsedNumbers()
    this.#senders.set(from, used)
    return used
  }
}

const textOf = (headers: IncomingHttpHeaders, name: string): string => {
  const value = headers[name]
  return typeof value === "string" ? value : ""
}

const bytesOf = (text: string): Buffer => Buffer.from(text, "base64url")
