/** How a publisher and its subscribers get onto each server of the channels benchmark. */
import { MessageTemplate, messageType } from "../wire/message.ts"
import type { Target } from "../wire/protocol.ts"
import { LoadSocket, type SocketEvents, type SocketProtocol } from "../wire/socket.ts"
import { freePort, type RunningServer } from "../machine/process.ts"
import { limit } from "../servers/limit.ts"
import { socketIo } from "../servers/socket-io.ts"
import {
  ask,
  call,
  connectPlayer,
  type Service,
  signIn,
  socketUrl,
  startService
} from "./service.ts"

export interface Publisher {
  readonly send: (seq: number, ts: number) => void
}

export interface AudienceServer {
  readonly name: string
  readonly start: (core: number | undefined) => Promise<RunningServer>
  readonly subscribe: (target: Target, index: number, events: SocketEvents) => Promise<unknown>
  readonly publish: (target: Target, events: SocketEvents) => Promise<Publisher>
}

const channel = "arena"
const config = { version: 1, features: { realtimeChannels: true } }
/** Subscribers come through a proxy, from addresses of which none has too many sockets. */
const proxied = { SVC_TRUSTED_PROXIES: "127.0.0.1" }
const perAddress = 16

const addressOf = (index: number): string => {
  const host = Math.floor(index / perAddress)
  return `10.${(host >> 16) & 255}.${(host >> 8) & 255}.${host & 255}`
}

const openChannel = ({ secretKey, target }: Service): Promise<unknown> =>
  call(
    "PUT",
    `${target.url}/v1/realtime/channels/${channel}`,
    { "x-svc-key": secretKey },
    {
      open: true
    }
  )

const startOne = async (core: number | undefined): Promise<RunningServer> => {
  const service = await startService(core, config, proxied)
  await openChannel(service)
  return service
}

const asRunner = async () => ({
  ...proxied,
  SVC_RUNNER_HOST: "127.0.0.1",
  SVC_RUNNER_PORT: String(await freePort())
})

/** Two runners on one core: what counts is the CPU that they use together. */
const startTwo = async (core: number | undefined): Promise<RunningServer> => {
  const first = await startService(core, config, await asRunner())
  const second = await first.twin(await asRunner())
  await openChannel(first)
  return {
    ...first,
    target: { ...first.target, secondUrl: second.target.url },
    cpuMicros: async () => (await first.cpuMicros()) + (await second.cpuMicros()),
    stop: async () => {
      await second.stop()
      await first.stop()
    }
  }
}

const nodeOf = (target: Target, index: number): Target =>
  index % 2 === 1 && target.secondUrl !== undefined ? { ...target, url: target.secondUrl } : target

const welcomed = (text: string): true | undefined =>
  text.startsWith('{"t":"welcome"') ? true : undefined

const ours = (name: string, start: AudienceServer["start"]): AudienceServer => ({
  name,
  start,
  subscribe: async (target, index, events) => {
    const url = `${socketUrl(nodeOf(target, index))}/v1/realtime`
    const header = `X-Forwarded-For: ${addressOf(index)}`
    const socket = await LoadSocket.connect(url, events, { header })
    await socket.request({ t: "auth", key: target.key, anon: true }, welcomed)
    await ask(socket, { t: "channelJoin", channel })
    return socket
  },
  publish: async (target, events) => {
    const [token = ""] = await signIn(target, 1)
    const socket = await connectPlayer(target, token, events)
    await ask(socket, { t: "channelJoin", channel })
    const template = new MessageTemplate(
      (data) => `{"t":"channelSend","channel":"${channel}","type":"${messageType}","data":${data}}`
    )
    return { send: (seq, ts) => socket.write(template.fill(seq, ts)) }
  }
})

const engine: SocketProtocol = {
  greeting: (text) => text.startsWith("0"),
  answer: (text) => (text === "2" ? "3" : undefined)
}

const joinSocketIo = async (target: Target, events: SocketEvents): Promise<LoadSocket> => {
  const url = `${socketUrl(target)}/socket.io/?EIO=4&transport=websocket`
  const socket = await LoadSocket.connect(url, events, engine)
  await socket.ask("40", (text) => text.startsWith("40") || undefined)
  await socket.ask(`420["join","${channel}"]`, (text) => text.startsWith("430") || undefined)
  return socket
}

const socketIoAudience: AudienceServer = {
  name: socketIo.name,
  start: socketIo.start,
  subscribe: (target, _index, events) => joinSocketIo(target, events),
  publish: async (target, events) => {
    const socket = await joinSocketIo(target, events)
    const template = new MessageTemplate((data) => `42["${messageType}",${data}]`)
    return { send: (seq, ts) => socket.write(template.fill(seq, ts)) }
  }
}

const joinLimit = async (target: Target, { onDelivery, onLost }: SocketEvents) => {
  const [player] = await limit.joinRoom({
    target,
    name: channel,
    size: 1,
    onDelivery: (_, ts) => onDelivery(ts),
    onLost
  })
  if (player === undefined) throw new Error("nobody has joined")
  return player
}

const limitAudience: AudienceServer = {
  name: limit.name,
  start: limit.start,
  subscribe: (target, _index, events) => joinLimit(target, events),
  publish: joinLimit
}

export const audienceServers: ReadonlyArray<AudienceServer> = [
  ours("ours", startOne),
  socketIoAudience,
  limitAudience,
  ours("ours-two", startTwo)
]
