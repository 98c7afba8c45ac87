/**
 * The service itself, as `npm start` runs it: an empty data directory, its own Postgres (a process
 * of its own, not charged), the development environment of the seeded project, throttles off.
 */
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Schema from "effect/Schema"
import { MessageTemplate, messageType } from "../load/message.ts"
import { LoadSocket } from "../load/socket.ts"
import { freePort, launchServer } from "../process.ts"
import type { Peer, Player, RoomPlan } from "./peer.ts"

const main = fileURLToPath(new URL("../../../src/main.ts", import.meta.url))
const mode = "bench"

const config = {
  version: 1,
  features: { multiplayer: true },
  multiplayer: {
    modes: [{ key: mode, minPlayers: 2, maxPlayers: 64, fillTimeoutSeconds: 15 }]
  }
}

const DevKeys = Schema.fromJsonString(
  Schema.Struct({
    development: Schema.Struct({ publishableKey: Schema.String, secretKey: Schema.String })
  })
)
const Session = Schema.Struct({ accessToken: Schema.String })

/** The frames a player waits for while it takes its seat (spec section 4.4). */
const ServerFrame = Schema.fromJsonString(
  Schema.Struct({
    t: Schema.String,
    rid: Schema.optionalKey(Schema.String),
    ok: Schema.optionalKey(Schema.Boolean),
    data: Schema.optionalKey(Schema.Struct({ roomId: Schema.optionalKey(Schema.String) })),
    error: Schema.optionalKey(Schema.Struct({ code: Schema.String, message: Schema.String }))
  })
)
const decodeFrame = Schema.decodeUnknownSync(ServerFrame)

async function call(method: string, url: string, key: string, body: object): Promise<unknown> {
  const response = await fetch(url, {
    method,
    headers: { "content-type": "application/json", "x-svc-key": key },
    body: JSON.stringify(body)
  })
  if (!response.ok) {
    throw new Error(`${method} ${url} answered ${response.status}: ${await response.text()}`)
  }
  return response.json()
}

/** The caller's environment without what would configure the service differently. */
function serviceEnvironment(port: number, dataDir: string): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("SVC_") && name !== "NODE_ENV" && name !== "DATABASE_URL"
  )
  return {
    ...Object.fromEntries(inherited),
    HOST: "127.0.0.1",
    PORT: String(port),
    SVC_DATA_DIR: dataDir,
    SVC_THROTTLES: "off"
  }
}

async function start(core: number | undefined) {
  const dataDir = await mkdtemp(join(tmpdir(), "bench-"))
  const removeData = () => rm(dataDir, { recursive: true, force: true })
  try {
    // Postgres may run as another user than the service and has to get in.
    await chmod(dataDir, 0o755)
    const port = await freePort()
    const env = serviceEnvironment(port, dataDir)
    const server = await launchServer({ script: main, core, port, env })
    const stop = () => server.stop().finally(removeData)
    try {
      const file = await readFile(join(dataDir, "dev-keys.json"), "utf8")
      const keys = Schema.decodeUnknownSync(DevKeys)(file).development
      await call("PUT", `${server.target.url}/v1/config`, keys.secretKey, config)
      return { ...server, target: { url: server.target.url, key: keys.publishableKey }, stop }
    } catch (error) {
      await stop()
      throw error
    }
  } catch (error) {
    await removeData()
    throw error
  }
}

/** A guest on an authenticated socket, not yet in a room. */
async function connectGuest(plan: RoomPlan, member: number): Promise<LoadSocket> {
  const { key, url } = plan.target
  const session = await call("POST", `${url}/v1/auth/guest`, key, {})
  const token = Schema.decodeUnknownSync(Session)(session).accessToken
  const socket = await LoadSocket.connect(`${url.replace("http:", "ws:")}/v1/realtime`, {
    onDelivery: (ts) => plan.onDelivery(member, ts),
    onLost: plan.onLost
  })
  await socket.request(
    { t: "auth", key, token },
    (text) => decodeFrame(text).t === "welcome" || undefined
  )
  return socket
}

/** Sends `create` or `join` and returns the room's id. */
function enter(socket: LoadSocket, frame: object): Promise<string> {
  const rid = "enter"
  return socket.request({ ...frame, rid }, (text) => {
    const answer = decodeFrame(text)
    if (answer.t !== "reply" || answer.rid !== rid) return undefined
    if (answer.ok === true && answer.data?.roomId !== undefined) return answer.data.roomId
    throw new Error(`room refused: ${answer.error?.code} ${answer.error?.message}`)
  })
}

async function joinRoom(plan: RoomPlan): Promise<ReadonlyArray<Player>> {
  const sockets = await Promise.all(
    Array.from({ length: plan.size }, (_, member) => connectGuest(plan, member))
  )
  const [creator, ...others] = sockets
  if (creator === undefined) return []
  const roomId = await enter(creator, { t: "create", mode, maxPlayers: plan.size })
  await Promise.all(others.map((socket) => enter(socket, { t: "join", roomId })))
  return sockets.map((socket) => {
    const template = new MessageTemplate(
      (data) => `{"t":"send","type":"${messageType}","data":${data}}`
    )
    return { send: (seq, ts) => socket.write(template.fill(seq, ts)) }
  })
}

export const ours: Peer = { name: "ours", start, joinRoom }
