/** A scripted client of `/v1/rpc` for tests: sends messages of Effect RPC as a hostile client would. */
import { Effect } from "effect"
import { at } from "#testing/players"
import { connectSocket, pause } from "#testing/socket-client"

const pollMillis = 10
const polls = 1500

/** Connects to the native endpoint of a service. */
export const connectNative = Effect.fnUntraced(function* (url: string) {
  const socket = yield* connectSocket(`${url.replace("http", "ws")}/v1/rpc`)
  let id = 0
  /** Sends a call without waiting; returns its id. */
  const send = Effect.fnUntraced(function* (
    tag: string,
    payload: unknown = null,
    headers: Readonly<Record<string, string>> = {}
  ) {
    id += 1
    yield* socket.send({
      _tag: "Request",
      id: `${id}`,
      tag,
      payload,
      headers: Object.entries(headers)
    })
    return `${id}`
  })
  /** The first message of this kind about a call. */
  const about = (tag: string, requestId: string) =>
    Effect.suspend(() => {
      const found = socket.received.find(
        (message) => message["_tag"] === tag && message["requestId"] === requestId
      )
      return found === undefined
        ? Effect.andThen(pause(pollMillis), Effect.fail("none"))
        : Effect.succeed(found)
    }).pipe(
      Effect.retry({ times: polls }),
      Effect.mapError(
        () => new Error(`No ${tag} of call ${requestId}: ${JSON.stringify(socket.received)}`)
      ),
      Effect.orDie
    )
  return {
    socket,
    send,
    /** Sends a call; returns the code of its error, or `ok`. */
    call: Effect.fnUntraced(function* (
      tag: string,
      payload: unknown = null,
      headers: Readonly<Record<string, string>> = {}
    ) {
      const exit = yield* about("Exit", yield* send(tag, payload, headers))
      return String(at(exit, "exit", "cause", 0, "error", "_tag") ?? "ok")
    }),
    /** Opens the events stream, and waits for the welcome. */
    open: Effect.fnUntraced(function* (headers: Readonly<Record<string, string>>) {
      const requestId = yield* send("events", null, headers)
      yield* about("Chunk", requestId)
      yield* socket.send({ _tag: "Ack", requestId })
      return requestId
    }),
    about
  }
})
