/**
 * WebSocket of `/v1/rpc`: messages of Effect RPC as JSON. The socket counts every call before the
 * RPC server sees it. An `events` stream is the connection of a player; its end ends the
 * connection.
 */
import { Effect, Schema } from "effect"
import { type RpcMessage, RpcSerialization } from "effect/rpc"
import { type CodedError, InvalidFrame, RateLimited, Unauthorized } from "#rpc/errors/codes"
import { changedNumberOf, numberRule } from "#rpc/json"
import type { CloseCode } from "#rpc/realtime"
import { Frame } from "#server/platform/socket-outbox"
import { frameFeatureError } from "./frames.ts"
import type { PlayerConnection } from "#server/links/player-connection"
import {
  type Admission,
  ClientSocket,
  type SocketHost,
  type UpgradedSocket,
  endOf
} from "./client-socket.ts"

/**
 * Time that the error of a closing connection may take to its client: it waits for
 * acknowledgements.
 */
const closeDelay = "100 millis"

const Id = Schema.Union([Schema.String, Schema.Number])

/** Schema check of client messages. The RPC server checks tags and payloads of requests. */
const matches = Schema.is(
  Schema.Union([
    Schema.Struct({
      _tag: Schema.Literal("Request"),
      id: Id,
      tag: Schema.String,
      headers: Schema.Array(Schema.Tuple([Schema.String, Schema.String]))
    }),
    Schema.Struct({ _tag: Schema.Literals(["Ack", "Interrupt"]), requestId: Id }),
    Schema.Struct({ _tag: Schema.Literals(["Ping", "Eof"]) })
  ])
)

const isCall = (value: unknown): value is RpcMessage.FromClientEncoded => matches(value)

const encodeLimited = Schema.encodeSync(RateLimited)
const encodeInvalid = Schema.encodeSync(InvalidFrame)

/** Dependencies of a socket of this endpoint beside its node. */
export interface RpcEndpoint {
  /** Identifies the socket to the RPC server. */
  readonly id: number
  /** Headers of the upgrade, which apply to every call. */
  readonly headers: ReadonlyArray<[string, string]>
  /** Passes a message to the RPC server. */
  readonly write: (id: number, message: RpcMessage.FromClientEncoded) => Effect.Effect<void>
  /** Reports the end of the socket, so that the RPC server ends all its calls. */
  readonly onDisconnected: (id: number) => void
}

export class RpcSocket extends ClientSocket {
  readonly #host: SocketHost
  readonly #endpoint: RpcEndpoint
  readonly #parser = RpcSerialization.json.makeUnsafe()
  /** Fails the events stream with an error. */
  #endStream: ((error: CodedError) => void) | undefined
  /** The request of the events stream, whose exit closes the socket if it is to close. */
  #streamRequest: string | number | undefined
  #closeWith: readonly [code: CloseCode, reason: string] | undefined
  /** Chunks without an acknowledgement. Only acknowledgements of these cost nothing. */
  #unacknowledged = 0

  constructor(host: SocketHost, endpoint: RpcEndpoint, upgraded: UpgradedSocket) {
    super(host, upgraded)
    this.#host = host
    this.#endpoint = endpoint
  }

  /** Starts to check the credentials of an events stream; false if the socket has one already. */
  openStream(requestId: string | number): boolean {
    if (this.isClosed || this.isChecking || this.admission !== undefined) return false
    if (this.#closeWith !== undefined) return false
    this.#streamRequest = requestId
    this.startChecking()
    return true
  }

  /** Attaches the open events stream; `endStream` ends it with an error. */
  accept(admission: Admission, endStream: (error: CodedError) => void): void {
    this.#endStream = endStream
    this.admit(admission)
  }

  /** Returns the connection for a procedure, or the reason of its refusal. */
  connectionFor(t: string): {
    readonly connection?: PlayerConnection | undefined
    readonly error?: CodedError | undefined
  } {
    const { connection } = this.admission ?? {}
    if (connection === undefined || this.#closeWith !== undefined) return {}
    return { connection, error: frameFeatureError(this.featureErrors, t) }
  }

  /** Detaches the events stream that has ended; the client may open another one. */
  leaveStream(): void {
    this.#endStream = undefined
    if (!this.isClosed) this.dismissed()
  }

  /** Closes the socket; with an error, once the client has received it as the end of its stream. */
  override close(code: CloseCode, reason: string, error?: CodedError): void {
    if (error === undefined || this.isClosed) return super.close(code, reason)
    if (this.#closeWith !== undefined) return
    this.#closeWith = [code, reason]
    this.admission?.connection?.close(endOf(code))
    this.#endStream?.(error)
    const end = Effect.sync(() => super.close(code, reason))
    this.#host.run(Effect.delay(end, closeDelay))
  }

  /** Sends a message of the RPC server. */
  send(message: RpcMessage.FromServerEncoded): void {
    if (message._tag === "Chunk") this.#unacknowledged += 1
    const text = this.#parser.encode(message)
    if (typeof text === "string") this.push(new Frame(text))
    if (message._tag !== "Exit" || message.requestId !== this.#streamRequest) return
    if (this.#closeWith !== undefined) super.close(...this.#closeWith)
  }

  protected receive(data: Buffer, now: number): void {
    const changed = changedNumberOf(data.toString())
    for (const call of this.#decode(data)) {
      if (this.isClosed) return
      if (!isCall(call)) this.#refuseInvalid(now)
      else if (changed !== undefined) this.#refuseNumber(call, changed, now)
      else if (this.#takeCall(call, now)) this.#write(this.#withHeaders(call))
      else this.#refuseLimited(call, now)
    }
  }

  #decode(data: Buffer): ReadonlyArray<unknown> {
    try {
      return this.#parser.decode(data)
    } catch {
      return [undefined]
    }
  }

  #takeCall({ _tag }: RpcMessage.FromClientEncoded, now: number): boolean {
    if (_tag !== "Ack" || this.#unacknowledged === 0) return this.take(now)
    this.#unacknowledged -= 1
    return true
  }

  #withHeaders(call: RpcMessage.FromClientEncoded): RpcMessage.FromClientEncoded {
    if (call._tag !== "Request") return call
    return { ...call, headers: [...this.#endpoint.headers, ...call.headers] }
  }

  #write(call: RpcMessage.FromClientEncoded): void {
    this.#host.run(
      Effect.catchDefect(this.#endpoint.write(this.#endpoint.id, call), (defect) =>
        Effect.logError("Failed to handle a call", defect)
      )
    )
  }

  /** Refuses a message that is no call. */
  #refuseInvalid(now: number): void {
    if (this.takeInvalid(now))
      this.send({ _tag: "Defect", defect: "This is not a message of RPC." })
    else this.drop(now)
  }

  /** Refuses a call with a number that does not reach the others as it was sent. */
  #refuseNumber(call: RpcMessage.FromClientEncoded, path: string, now: number): void {
    if (!this.takeInvalid(now)) return void this.drop(now)
    if (call._tag !== "Request") return
    const issues = [{ path, message: numberRule }]
    this.#fail(
      call.id,
      encodeInvalid(new InvalidFrame({ message: numberRule, details: { issues } }))
    )
  }

  #fail(requestId: string | number, error: unknown): void {
    const exit = { _tag: "Failure", cause: [{ _tag: "Fail", error }] } as const
    this.send({ _tag: "Exit", requestId, exit })
  }

  /** Refuses a call beyond the rate limit. */
  #refuseLimited(call: RpcMessage.FromClientEncoded, now: number): void {
    const retryAfterSeconds = this.drop(now)
    if (retryAfterSeconds === undefined || call._tag !== "Request") return
    this.#fail(call.id, encodeLimited(new RateLimited({ details: { retryAfterSeconds } })))
  }

  protected sweepAdmitted(): void {
    // The events stream ends by itself when its token expires.
  }

  protected disconnected(): void {
    this.#endStream?.(new Unauthorized({ message: "The socket is closed." }))
    this.#endpoint.onDisconnected(this.#endpoint.id)
  }
}
