/**
 * The service itself, as `npm start` runs it: an empty data directory, its own Postgres (a process
 * of its own, not charged), the development environment of the seeded project, throttles off. Alone,
 * or as two runners of one cluster that share each room's players.
 */
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Schema from "effect/Schema"
import { certified } from "../../support/certificate.ts"
import { MessageTemplate, messageType } from "../wire/message.ts"
import { LoadSocket } from "../wire/socket.ts"
import { freePort, launchServer, type RunningServer } from "../machine/process.ts"
import type { Peer, Player, RoomPlan } from "./peer.ts"

const main = fileURLToPath(new URL("../../../src/server/main.ts", import.meta.url))
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

/** The frames a player waits for while it takes its seat. */
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

/** One process of the service; as a runner it joins the others on its data directory. */
async function launchService(
  core: number | undefined,
  dataDir: string,
  runner: Readonly<Record<string, string>> | undefined
): Promise<RunningServer> {
  const port = await freePort()
  const cluster = runner && {
    SVC_RUNNER_HOST: "127.0.0.1",
    SVC_RUNNER_PORT: String(await freePort()),
    ...runner
  }
  const env = { ...serviceEnvironment(port, dataDir), ...cluster }
  return launchServer({ script: main, core, port, env })
}

/** Seeds a new data directory and hands it to `run`; it is removed when the server stops. */
async function onEmptyData(
  run: (dataDir: string, stack: AsyncDisposableStack) => Promise<RunningServer>
): Promise<RunningServer> {
  await using stack = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), "bench-"))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  // Postgres may run as another user than the service and has to get in.
  await chmod(dataDir, 0o755)
  const server = await run(dataDir, stack)
  const file = await readFile(join(dataDir, "dev-keys.json"), "utf8")
  const keys = Schema.decodeUnknownSync(DevKeys)(file).development
  await call("PUT", `${server.target.url}/v1/config`, keys.secretKey, config)
  const target = { ...server.target, key: keys.publishableKey }
  const running = stack.move()
  return { ...server, target, stop: () => running.disposeAsync() }
}

const startOne = (core: number | undefined): Promise<RunningServer> =>
  onEmptyData(async (dataDir, stack) => {
    const server = await launchService(core, dataDir, undefined)
    stack.defer(server.stop)
    return server
  })

/** Mutual TLS with a certificate that is its own authority. */
async function tlsSettings(dataDir: string): Promise<Readonly<Record<string, string>>> {
  const [cert, key] = [join(dataDir, "runner-cert.pem"), join(dataDir, "runner-key.pem")]
  await writeFile(cert, certified.cert)
  await writeFile(key, certified.key)
  return { SVC_RUNNER_TLS_CERT: cert, SVC_RUNNER_TLS_KEY: key, SVC_RUNNER_TLS_CA: cert }
}

/** Both on one core: what counts is the CPU that they use together. */
const startTwo = (
  core: number | undefined,
  settings: (dataDir: string) => Promise<Readonly<Record<string, string>>>
): Promise<RunningServer> =>
  onEmptyData(async (dataDir, stack) => {
    const runner = await settings(dataDir)
    const first = await launchService(core, dataDir, runner)
    stack.defer(first.stop)
    const second = await launchService(core, dataDir, runner)
    stack.defer(second.stop)
    return {
      ...first,
      target: { ...first.target, secondUrl: second.target.url },
      cpuMicros: async () => (await first.cpuMicros()) + (await second.cpuMicros())
    }
  })

/** A guest on an authenticated socket, not yet in a room. */
async function connectGuest(plan: RoomPlan, member: number): Promise<LoadSocket> {
  const { key, secondUrl, url: firstUrl } = plan.target
  const url = member % 2 === 0 ? firstUrl : (secondUrl ?? firstUrl)
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

export const ours: Peer = { name: "ours", start: startOne, joinRoom }
export const oursTwo: Peer = {
  name: "ours-two",
  start: (core) => startTwo(core, () => Promise.resolve({})),
  joinRoom
}
/** With mutual TLS between the two. */
export const oursTwoTls: Peer = {
  name: "ours-two-tls",
  start: (core) => startTwo(core, tlsSettings),
  joinRoom
}
