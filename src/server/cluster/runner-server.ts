/**
 * The two protocols on the runner port: an authenticated connection that begins with the link preamble
 * carries a runner link ({@link RunnerTransport}), any other carries the cluster's own RPC.
 */
import type { Socket } from "node:net"
import { NodeSocket } from "@effect/platform-node"
import { Context, Effect, Fiber, Layer, Option } from "effect"
import { SocketServer } from "effect/socket"
import { rooms } from "#rpc/limits"
import { encodeFrame, FrameReader } from "./framing.ts"
import { closeSoon, RunnerPort } from "./runner-port.ts"
import {
  type RunnerConnection,
  type RunnerConnectionEvents,
  RunnerTransport
} from "./runner-transport.ts"

/** Names the protocol and its version; no RPC message begins with these bytes. */
const preamble = Buffer.from("runner-line-1\n")

/** A peer sends a heartbeat several times a second; after this long without a byte it is gone. */
const silenceMillis = 10_000

/** A connection over a socket; closing one closes the other. */
const connectionOver = (
  socket: Socket,
  sockets: Set<Socket>,
  eventsOf: (connection: RunnerConnection) => RunnerConnectionEvents
) => {
  let why: string | undefined
  const fail = (reason: string): void => {
    why ??= reason
    socket.destroy()
  }
  const attempt = (step: () => void): void => {
    try {
      step()
    } catch (error) {
      fail(String(error))
    }
  }
  const connection: RunnerConnection = {
    send: (frame) => {
      if (why !== undefined) return
      if (socket.writableLength > rooms.linkBufferMaxBytes) {
        return fail("the other end does not take what is sent")
      }
      attempt(() => socket.write(encodeFrame(frame)))
    },
    close: (reason) => {
      why ??= reason
      closeSoon(socket)
    }
  }
  const events = eventsOf(connection)
  const reader = new FrameReader()
  sockets.add(socket)
  socket.on("data", (chunk: Buffer) =>
    attempt(() => {
      for (const frame of reader.push(chunk)) if (why === undefined) events.received(frame)
    })
  )
  socket.on("timeout", () => fail("the other end is silent"))
  socket.on("error", (error) => fail(error.message))
  socket.once("close", () => {
    sockets.delete(socket)
    events.ended(why ?? "the other end closed it")
  })
  return connection
}

/** Whether the connection begins with the preamble. Consumes the preamble and nothing else. */
const isLink = (socket: Socket): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    let read = Buffer.alloc(0)
    const done = (matches: boolean): void => {
      socket.off("readable", inspect).off("end", reject).off("close", reject).off("timeout", expire)
      socket.setTimeout(0)
      resume(Effect.succeed(matches))
    }
    const reject = (): void => done(false)
    const expire = (): void => void socket.destroy()
    const inspect = (): void => {
      const chunk: unknown = socket.read()
      if (!(chunk instanceof Buffer)) return
      read = Buffer.concat([read, chunk])
      const head = read.subarray(0, preamble.length)
      const matches = preamble.subarray(0, head.length).equals(head)
      if (matches && head.length < preamble.length) return
      const rest = matches ? read.subarray(preamble.length) : read
      if (rest.length > 0) socket.unshift(rest)
      done(matches)
    }
    socket.on("readable", inspect).on("end", reject).on("close", reject).on("timeout", expire)
    socket.setTimeout(silenceMillis)
    if (socket.destroyed) reject()
    // What came with the end of the handshake is in the socket already, without a further event.
    else inspect()
  })

type Open = RunnerTransport["Service"]["open"]

/** Opens connections; frames wait until both ends have authenticated. */
const makeOpen = Effect.fnUntraced(function* (sockets: Set<Socket>) {
  const { dial } = yield* RunnerPort
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  const open: Open = (to, events) => {
    const waiting: Array<string> = []
    let waitingCharacters = 0
    let connection: RunnerConnection | undefined
    let why: string | undefined
    let closing: string | undefined
    const fail = (reason: string): void => {
      if (why !== undefined || connection !== undefined) return
      why = reason
      events.ended(reason)
    }
    const dialing = runFork(
      Effect.match(dial(to), {
        onFailure: ({ message }) => fail(message),
        onSuccess: (socket) => {
          if (why !== undefined) return socket.destroy()
          socket.write(preamble)
          connection = connectionOver(socket, sockets, () => events)
          for (const frame of waiting.splice(0)) connection.send(frame)
          if (closing !== undefined) connection.close(closing)
        }
      })
    )
    const stop = (reason: string): void => {
      runFork(Fiber.interrupt(dialing))
      fail(reason)
    }
    return {
      send: (frame) => {
        if (connection !== undefined) return connection.send(frame)
        waitingCharacters += frame.length
        if (waitingCharacters > rooms.linkBufferMaxBytes)
          return stop("the other end does not take what is sent")
        waiting.push(frame)
      },
      close: (reason) => {
        closing ??= reason
        if (connection !== undefined) connection.close(reason)
        else if (waiting.length === 0) stop(reason)
      }
    }
  }
  return open
})

/** Both protocols over the runner port. */
export const RunnerServerLive = Layer.effectContext(
  Effect.gen(function* () {
    const { server } = yield* RunnerPort
    const sockets = new Set<Socket>()
    const open = yield* makeOpen(sockets)
    // The server waits for its connections when it closes, so close them first.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const socket of sockets) closeSoon(socket)
      })
    )
    let accepted: ((connection: RunnerConnection) => RunnerConnectionEvents) | undefined

    return Context.make(SocketServer.SocketServer, {
      address: server.address,
      run: (handler) =>
        server.run((socket) =>
          Effect.gen(function* () {
            const raw = yield* Effect.serviceOption(NodeSocket.NetSocket)
            if (Option.isNone(raw) || !(yield* isLink(raw.value))) return yield* handler(socket)
            if (accepted === undefined) raw.value.destroy()
            else connectionOver(raw.value.setTimeout(silenceMillis), sockets, accepted)
            return undefined
          })
        )
    }).pipe(
      Context.add(RunnerTransport, {
        open,
        accept: (accept) => {
          accepted = accept
        }
      })
    )
  })
)
