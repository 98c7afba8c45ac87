/** Sockets in rooms and in a channel whose clients do not read what they are sent. */
import { randomBytes } from "node:crypto"
import { setTimeout as wait } from "node:timers/promises"
import { encodeFrame, opcodes } from "../wire/frames.ts"
import { clockMicros, messageType } from "../wire/message.ts"
import { LoadSocket, type SocketEvents } from "../wire/socket.ts"
import { inFlight, openLoop } from "./pace.ts"
import { ask, call, connectPlayer, socketUrl } from "./service.ts"
import type { Bench, Crowd, Scenario } from "./slow-scenario.ts"

const channel = "arena"
const roomSize = 8
const messageBytes = 4096
const messagesPerSecond = 2
const atATime = 64
/** Anonymous sockets of one address, which may have 20. */
const perAddress = 16
const pongMillis = 20_000
const settleMillis = 3000

export const socketsConfig = {
  features: { saves: true, multiplayer: true, realtimeChannels: true },
  multiplayer: { modes: [{ key: "crowd", minPlayers: 2, maxPlayers: roomSize }] }
}

const welcomed = (text: string): true | undefined =>
  text.startsWith('{"t":"welcome"') ? true : undefined

const text = (frame: object): Buffer =>
  encodeFrame(opcodes.text, Buffer.from(JSON.stringify(frame)), randomBytes(4))

const data = () => ({ pad: "x".repeat(messageBytes), ts: clockMicros() })

/** Half of the sockets listen to one channel, the others sit in rooms of eight. */
class Sockets {
  readonly listeners: Array<LoadSocket> = []
  readonly rooms: Array<ReadonlyArray<LoadSocket>> = []
  #lost = 0
  #received = 0
  readonly #bench: Bench
  readonly #events: SocketEvents = {
    onDelivery: () => void (this.#received += 1),
    onLost: () => void (this.#lost += 1)
  }

  constructor(bench: Bench) {
    this.#bench = bench
  }

  get all(): ReadonlyArray<LoadSocket> {
    return [...this.listeners, ...this.rooms.flat()]
  }

  get report(): string {
    return `${this.#lost} of ${this.all.length} were closed; ${this.#received} messages arrived`
  }

  async connect(count: number): Promise<void> {
    const half = Math.floor(count / 2)
    await inFlight(half, atATime, (index) => this.#listen(index))
    await inFlight(Math.floor((count - half) / roomSize), atATime / roomSize, () => this.#seat())
  }

  async #listen(index: number): Promise<void> {
    const { target } = this.#bench.service
    const host = Math.floor(index / perAddress)
    const header = `X-Forwarded-For: 10.1.${host >> 8}.${host & 255}`
    const url = `${socketUrl(target)}/v1/realtime`
    const socket = await LoadSocket.connect(url, this.#events, { header })
    await socket.request({ t: "auth", key: target.key, anon: true }, welcomed)
    await ask(socket, { t: "channelJoin", channel })
    this.listeners.push(socket)
  }

  async #seat(): Promise<void> {
    const members: Array<LoadSocket> = []
    for (let n = 0; n < roomSize; n++) members.push(await this.player())
    const [first, ...others] = members
    if (first === undefined) return
    const roomId = await ask(first, { t: "create", mode: "crowd" })
    for (const other of others) await ask(other, { t: "join", roomId })
    this.rooms.push(members)
  }

  async player(): Promise<LoadSocket> {
    const { headers, token } = await this.#bench.signIn()
    const header = `X-Forwarded-For: ${headers["x-forwarded-for"] ?? ""}`
    return connectPlayer(this.#bench.service.target, token, this.#events, { header })
  }
}

/** One member of each room sends, and one publisher to the channel. */
async function send(sockets: Sockets, publisher: LoadSocket, seconds: number): Promise<void> {
  const { rooms } = sockets
  const perSecond = rooms.length * messagesPerSecond
  await Promise.all([
    openLoop(perSecond * seconds, perSecond, async (index) => {
      rooms[index % rooms.length]?.[0]?.write(text({ t: "send", type: messageType, data: data() }))
    }),
    openLoop(messagesPerSecond * seconds, messagesPerSecond, async () => {
      const message = { t: "channelSend", channel, type: messageType, data: data() }
      publisher.write(text(message))
    })
  ])
}

/** A client that does not read does not answer pings either: it says itself that it is there. */
function answerPings(sockets: Sockets): () => void {
  const pong = encodeFrame(opcodes.pong, Buffer.alloc(0), randomBytes(4))
  const timer = setInterval(() => {
    for (const socket of sockets.all) socket.write(pong)
  }, pongMillis)
  return () => clearInterval(timer)
}

/** `seconds` for each phase. */
export const slowSockets = (count: number, seconds: number): Scenario => ({
  name: `${count} sockets, in a channel and in rooms, ${messagesPerSecond} messages of 4 KiB a second each`,
  gather: async (bench): Promise<Crowd> => {
    const { secretKey, target } = bench.service
    const url = `${target.url}/v1/realtime/channels/${channel}`
    await call("PUT", url, { "x-svc-key": secretKey }, { open: true })
    const sockets = new Sockets(bench)
    await sockets.connect(count)
    const publisher = await sockets.player()
    await ask(publisher, { t: "channelJoin", channel })
    return {
      phases: [
        { name: "read", run: () => send(sockets, publisher, seconds) },
        {
          name: "do not read",
          run: async () => {
            const stop = answerPings(sockets)
            for (const socket of sockets.all) socket.pause()
            await send(sockets, publisher, seconds)
            stop()
          }
        }
      ],
      end: async () => {
        for (const socket of sockets.all) socket.resume()
        await wait(settleMillis)
        const report = sockets.report
        for (const socket of sockets.all) socket.close()
        publisher.close()
        return report
      }
    }
  }
})
