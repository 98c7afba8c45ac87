/** The servers of the hosting benchmark: the service, sirv and nginx, with the same files. */
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import * as Schema from "effect/Schema"
import { startService } from "../many/service.ts"
import { pinned } from "../machine/cores.ts"
import { freePort, type RunningServer } from "../machine/process.ts"
import { startPeer } from "../servers/peer-packages.ts"

/** A server of the files. */
export interface FileServer {
  readonly name: string
  readonly port: number
  /** The `Host` of its requests. */
  readonly host: string
  readonly pid: number
  readonly stop: () => Promise<void>
}

const assetBytes = 20 * 1024
const wasmBytes = 10 * 1024 * 1024

/** Bytes that do not compress, the same in each run. */
const noise = (length: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(length)
  let state = 1
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    bytes[i] = state >>> 16
  }
  return bytes
}

const files: Readonly<Record<string, Uint8Array<ArrayBuffer>>> = {
  "index.html": new TextEncoder().encode("<!doctype html><p>Benchmark"),
  "assets/picture-DiwrgTda.png": noise(assetBytes),
  "game-DiwrgTda.wasm": noise(wasmBytes)
}

export const paths = { asset: "/assets/picture-DiwrgTda.png", wasm: "/game-DiwrgTda.wasm" }

const Created = Schema.Struct({ deploymentId: Schema.String })
const Hosting = Schema.Struct({ urls: Schema.Array(Schema.String) })

async function startOurs(core: number | undefined): Promise<FileServer> {
  const service = await startService(core, { features: { hosting: true } })
  const send = async (method: string, path: string, body?: object | Uint8Array<ArrayBuffer>) => {
    const isBytes = body instanceof Uint8Array
    const response = await fetch(`${service.target.url}/v1/${path}`, {
      method,
      headers: {
        "x-svc-key": service.secretKey,
        "content-type": isBytes ? "application/octet-stream" : "application/json"
      },
      ...(body === undefined ? {} : { body: isBytes ? body : JSON.stringify(body) })
    })
    const answer: unknown = await response.json()
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
    return answer
  }
  const hashed = Object.entries(files).map(([path, bytes]) => ({
    path,
    size: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex")
  }))
  const created = await send("POST", "deployments", { files: hashed })
  for (const { path, sha256 } of hashed) await send("PUT", `blobs/${sha256}`, files[path])
  const { deploymentId } = Schema.decodeUnknownSync(Created)(created)
  await send("POST", `deployments/${deploymentId}/finalize`, { activate: true })
  const { urls } = Schema.decodeUnknownSync(Hosting)(await send("GET", "hosting"))
  return {
    name: "ours",
    port: Number(new URL(service.target.url).port),
    host: new URL(urls[0] ?? "").hostname,
    pid: service.pid,
    stop: service.stop
  }
}

const peerOf = (name: string, { pid, stop, target }: RunningServer): FileServer => ({
  name,
  port: Number(new URL(target.url).port),
  host: "127.0.0.1",
  pid,
  stop
})

const configOf = (folder: string, port: number): string => `
daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events { worker_connections 4096; }
http {
  types { text/html html; image/png png; application/wasm wasm; }
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server { listen 127.0.0.1:${port}; root ${folder}/www; add_header Cache-Control "max-age=31536000"; }
}
`

/** nginx with one process, if it is installed. */
async function startNginx(
  core: number | undefined,
  folder: string
): Promise<FileServer | undefined> {
  if (spawnSync("nginx", ["-v"]).error !== undefined) return undefined
  const port = await freePort()
  const file = join(folder, "nginx.conf")
  await writeFile(file, configOf(folder, port))
  const [command = "nginx", ...args] = pinned(core, ["nginx", "-p", folder, "-c", file])
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "inherit"] })
  const answers = () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      ({ ok }) => ok,
      () => false
    )
  while (!(await answers())) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`)
    await wait(20)
  }
  return {
    name: "nginx",
    port,
    host: "127.0.0.1",
    pid: child.pid ?? 0,
    stop: async () => void child.kill("SIGTERM")
  }
}

/** Starts all of them on one core; nginx only where it is installed. */
export async function startFileServers(
  core: number | undefined,
  stack: AsyncDisposableStack
): Promise<ReadonlyArray<FileServer>> {
  const folder = await mkdtemp(join(tmpdir(), "bench-files-"))
  await chmod(folder, 0o755)
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  for (const [path, bytes] of Object.entries(files)) {
    const file = join(folder, "www", path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, bytes)
  }
  const ours = await startOurs(core)
  stack.defer(ours.stop)
  const sirv = peerOf("sirv", await startPeer("files-sirv.mjs", core, [join(folder, "www")]))
  stack.defer(sirv.stop)
  const nginx = await startNginx(core, folder)
  if (nginx !== undefined) stack.defer(nginx.stop)
  return nginx === undefined ? [ours, sirv] : [ours, sirv, nginx]
}
