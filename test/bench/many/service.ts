/**
 * The service under load: started on an empty data directory with a config of the benchmark's own,
 * and its guests, each with a token and a socket that is welcome.
 */
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises"
import { Agent, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Schema from "effect/Schema"
import type { Target } from "../wire/protocol.ts"
import { LoadSocket, type SocketEvents, type SocketProtocol } from "../wire/socket.ts"
import { freePort, launchServer, type RunningServer } from "../machine/process.ts"
import { inFlight } from "./pace.ts"

const main = fileURLToPath(new URL("../../../src/server/main.ts", import.meta.url))

const DevKeys = Schema.fromJsonString(
  Schema.Struct({
    development: Schema.Struct({ publishableKey: Schema.String, secretKey: Schema.String })
  })
)

const decodeDevKeys = Schema.decodeUnknownSync(DevKeys)

/** The keys of the development environment, from `dev-keys.json`. */
export const developmentKeys = (text: string) => decodeDevKeys(text).development

type Env = Readonly<Record<string, string>>

/** The caller's environment without what would configure the service differently. */
export const inheritedEnvironment = (): Record<string, string | undefined> =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !name.startsWith("SVC_") && name !== "NODE_ENV" && name !== "DATABASE_URL"
    )
  )

/** A process of the service on these data; throttles are off. */
async function launchOn(
  dataDir: string,
  core: number | undefined,
  own: Env
): Promise<RunningServer> {
  const port = await freePort()
  const env = {
    ...inheritedEnvironment(),
    HOST: "127.0.0.1",
    PORT: `${port}`,
    SVC_BASE_URL: "http://bench.localhost",
    SVC_DATA_DIR: dataDir,
    SVC_THROTTLES: "off",
    ...own
  }
  return launchServer({ script: main, core, port, env })
}

export interface Service extends RunningServer {
  /** A second process on the same data, for work that should leave no trace in the first. */
  readonly twin: (env?: Env) => Promise<RunningServer>
  readonly secretKey: string
}

/** Starts the service as `npm start` does, with a config; its data go when it stops. */
export async function startService(
  core: number | undefined,
  config: object,
  env: Env = {}
): Promise<Service> {
  await using stack = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), "bench-"))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  // Postgres may run as another user than the service and has to get in.
  await chmod(dataDir, 0o755)
  const server = await launchOn(dataDir, core, env)
  stack.defer(server.stop)
  const keys = developmentKeys(await readFile(join(dataDir, "dev-keys.json"), "utf8"))
  await call("PUT", `${server.target.url}/v1/config`, { "x-svc-key": keys.secretKey }, config)
  const withKey = (running: RunningServer): RunningServer => ({
    ...running,
    target: { ...running.target, key: keys.publishableKey }
  })
  const running = stack.move()
  return {
    ...withKey(server),
    twin: async (own = {}) => withKey(await launchOn(dataDir, core, own)),
    secretKey: keys.secretKey,
    stop: () => running.disposeAsync()
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 256 })

/** A JSON request over a connection that is kept; fails on any status but 200. */
export function call(
  method: "POST" | "PUT",
  url: string,
  headers: Readonly<Record<string, string>>,
  body: object
): Promise<unknown> {
  const { promise, reject, resolve } = Promise.withResolvers<unknown>()
  const text = JSON.stringify(body)
  const length = String(Buffer.byteLength(text))
  const options = {
    agent,
    method,
    headers: { ...headers, "content-type": "application/json", "content-length": length }
  }
  const sent = request(url, options, (response) => {
    let answer = ""
    response.setEncoding("utf8")
    response.on("data", (chunk: string) => (answer += chunk))
    response.on("end", () => {
      if (response.statusCode === 200) resolve(JSON.parse(answer))
      else reject(new Error(`${method} ${url} answered ${response.statusCode}: ${answer}`))
    })
  })
  sent.on("error", (error: NodeJS.ErrnoException) => {
    // A server closes a connection that it has kept for long, maybe as the request comes.
    if (!sent.reusedSocket || error.code !== "ECONNRESET") reject(error)
    else resolve(call(method, url, headers, body))
  })
  sent.end(text)
  return promise
}

const Session = Schema.Struct({ accessToken: Schema.String })
const decodeSession = Schema.decodeUnknownSync(Session)
const signInsAtATime = 16

/** Signs in so many guests; answers their access tokens. */
export async function signIn(target: Target, count: number): Promise<ReadonlyArray<string>> {
  const tokens: Array<string> = []
  await inFlight(count, signInsAtATime, async () => {
    const headers = { "x-svc-key": target.key }
    const session = await call("POST", `${target.url}/v1/auth/guest`, headers, {})
    tokens.push(decodeSession(session).accessToken)
  })
  return tokens
}

const welcomed = (text: string): true | undefined =>
  text.startsWith('{"t":"welcome"') ? true : undefined

/** Where the sockets of a target go. */
export const socketUrl = ({ url }: Target): string => url.replace("http:", "ws:")

/** A socket that the service has welcomed. */
export async function connectPlayer(
  target: Target,
  token: string,
  events: SocketEvents,
  protocol: SocketProtocol = {}
): Promise<LoadSocket> {
  const socket = await LoadSocket.connect(`${socketUrl(target)}/v1/realtime`, events, protocol)
  await socket.request({ t: "auth", key: target.key, token }, welcomed)
  return socket
}

/** The replies that a benchmark waits for. */
const Reply = Schema.fromJsonString(
  Schema.Struct({
    ok: Schema.Boolean,
    data: Schema.optionalKey(Schema.Struct({ roomId: Schema.optionalKey(Schema.String) })),
    error: Schema.optionalKey(Schema.Struct({ code: Schema.String, message: Schema.String }))
  })
)
const decodeReply = Schema.decodeUnknownSync(Reply)

/** Sends a room request; returns the room id, or an empty string if the reply has none. */
export function ask(
  socket: LoadSocket,
  frame: { readonly t: string; readonly [field: string]: unknown }
): Promise<string> {
  return socket.request({ ...frame, rid: "1" }, (text) => {
    if (!text.startsWith('{"t":"reply"')) return undefined
    const { data, error, ok } = decodeReply(text)
    if (!ok) throw new Error(`${frame.t} refused: ${error?.code} ${error?.message}`)
    return data?.roomId ?? ""
  })
}
