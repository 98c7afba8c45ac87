/**
 * What the service and one process of a function say to each other is authenticated call by call. A call
 * has a header with its facts as JSON, after their HMAC under a key of this process alone. A position on a
 * connection proves nothing. Numbers and a time limit refuse a recorded call.
 *
 * In the process the key is a binding of modules that the player's code cannot reach.
 */
import {
  createHmac,
  createSecretKey,
  hash,
  type KeyObject,
  randomBytes,
  timingSafeEqual
} from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { Schema } from "effect"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import type { Framing } from "./framing.ts"
import { UsedNumbers } from "./used-numbers.ts"

/** Name of the header. Clients cannot send it, and functions do not receive it. */
const sealHeader = "x-svc-call"
/** Characters of an HMAC in hexadecimal. */
const macCharacters = 64

/** What a process learns of a call. */
export interface SealedFacts {
  readonly kind: "fetch" | "scheduled" | "queue" | "hook" | "exports" | "admin"
  readonly method: string
  readonly framing: Framing
  /** SHA-256 of the body, if the service has made it itself. */
  readonly digest?: string
  readonly url?: string
  readonly address?: string
  readonly player?: string | undefined
  /** Signed id of the call, for its requests. */
  readonly call?: string
  /** Whether the environment's storage is full. */
  readonly isFull?: boolean
}

const HostFacts = Schema.fromJsonString(
  Schema.Struct({
    number: Schema.Int,
    until: Schema.Finite,
    method: Schema.String,
    path: Schema.String,
    digest: Schema.String
  })
)
const decodeHostFacts = Schema.decodeUnknownOption(HostFacts)

const keyBytes = 32

/** A key in hexadecimal, as the configuration of a process has it. */
export const makeSealKey = (): string => randomBytes(keyBytes).toString("hex")

export const digestOf = (body: string | Uint8Array): string => hash("sha256", body, "hex")

/** Characters that a header cannot carry. */
const notAscii = /[\u007f-\uffff]/g

const escaped = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

export class ProcessSeal {
  readonly #key: KeyObject
  readonly #wallClock: () => number
  readonly #used = new UsedNumbers()
  #last = 0

  constructor(key: string, wallClock: () => number) {
    this.#key = createSecretKey(key, "hex")
    this.#wallClock = wallClock
  }

  #mac(from: "call" | "host", text: string): Buffer {
    return createHmac("sha256", this.#key).update(`${from}\n${text}`).digest()
  }

  /** Returns the headers of a call of the service. */
  headersOf(facts: SealedFacts): Record<string, string> {
    const until = this.#wallClock() + functionRuntime.passedResponseMillis
    const sealed = { number: (this.#last += 1), until, ...facts }
    const text = JSON.stringify(sealed).replace(notAscii, escaped)
    return { [sealHeader]: this.#mac("call", text).toString("hex") + text }
  }

  /** Whether a call comes from the bindings of the process, and for the first time. */
  accepts(
    headers: IncomingHttpHeaders,
    {
      body,
      method,
      path
    }: { readonly body: Uint8Array; readonly method: string; readonly path: string }
  ): boolean {
    const call = headers[sealHeader]
    if (typeof call !== "string") return false
    const text = call.slice(macCharacters)
    const expected = this.#mac("host", text)
    const actual = Buffer.from(call.slice(0, macCharacters), "hex")
    if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return false
    const decoded = decodeHostFacts(text)
    if (decoded._tag === "None") return false
    const facts = decoded.value
    return (
      facts.until >= this.#wallClock() &&
      facts.method === method &&
      facts.path === path &&
      facts.digest === digestOf(body) &&
      this.#used.use(facts.number)
    )
  }
}

/**
 * Returns a configuration with the key of one process in place of `placeholder`. A configuration serves
 * many starts, and each has a key of its own. The placeholder is as random as a key: no module has it.
 */
export const withSealKey = (config: Uint8Array, placeholder: string, key: string): Uint8Array => {
  const filled = Buffer.from(config)
  let count = 0
  for (let at = filled.indexOf(placeholder); at !== -1; at = filled.indexOf(placeholder, at)) {
    filled.write(key, at, "latin1")
    count += 1
  }
  if (count === 0) throw new Error("The configuration of a function has no place for its key.")
  return filled
}
