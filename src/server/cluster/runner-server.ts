/**
 * Server on the runner's port. Two protocols share it: a connection that begins with the link preamble
 * carries a runner link ({@link RunnerTransport}), any other carries the cluster's own RPC. Neither
 * authenticates its peer, so the port belongs in a private network.
 */
import { connect, type Socket } from "node:net"
import { NodeSocket, NodeSocketServer } from "@effect/platform-node"
import { Context, Effect, Layer, Option } from "effect"
import { SocketServer } from "effect/socket"
import { rooms } from "#rpc/limits"
import { encodeFrame, FrameReader } from "./framing.ts"
import {
  type RunnerConnection,
  type RunnerConnectionEvents,
  RunnerTransport
} from "./runner-transport.ts"

/** Names the protocol and its version; no RPC message begins with these bytes. */
const preamble = Buffer.from("runner-line-1\n")

const openMillis = 1000
const lingerMillis = 500
/** A peer sends a heartbeat several times a second; after this long without a byte it is gone. */
const silenceMillis = 10_000

/** Closes a socket after it has sent everything, or after half a second. */
const finish = (socket: Socket): void => socket.setTimeout(lingerMillis).destroySoon()

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
      finish(socket)
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
  })

/** Listens on the runner's port. */
export const runnerServerLayer = (host: string, port: number) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const server = yield* NodeSocketServer.make({ host, port, noDelay: true })
      const sockets = new Set<Socket>()
      // The server waits for its connections when it closes, so close them first.
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          for (const socket of sockets) finish(socket)
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
          open: (to, events) => {
            const socket = connect({ host: to.host, port: to.port, noDelay: true })
            socket.setTimeout(openMillis)
            socket.once("connect", () => socket.setTimeout(0))
            socket.write(preamble)
            return connectionOver(socket, sockets, () => events)
          },
          accept: (accept) => {
            accepted = accept
          }
        })
      )
    })
  )
