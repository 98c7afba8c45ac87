/** Deployments over HTTP, as the CLI makes them. */
import { hash } from "node:crypto"
import { request as httpRequest, type IncomingHttpHeaders } from "node:http"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, request, type TestResponse, type TestTarget } from "#testing/players"

type Target = Pick<TestTarget, "url" | "secretKey">

export const sha256 = (content: string | Uint8Array): string => hash("sha256", content, "hex")

/** Contents by path. */
export type AppFiles = Readonly<Record<string, string | Uint8Array<ArrayBuffer>>>

const bytesOf = (content: string | Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> =>
  typeof content === "string" ? new Uint8Array(Buffer.from(content)) : content

/** The file list of a deployment. */
export const manifestOf = (files: AppFiles) =>
  Object.entries(files).map(([path, content]) => {
    const bytes = bytesOf(content)
    return { path, sha256: sha256(bytes), size: bytes.length }
  })

/** Calls an endpoint of hosting with the secret key. */
export const call = (
  { secretKey, url }: Target,
  method: string,
  path: string,
  body?: unknown
): Effect.Effect<TestResponse> =>
  request(`${url}/v1/${path}`, {
    method,
    headers: { "x-svc-key": secretKey },
    ...(body === undefined ? {} : { body })
  })

/** Creates a deployment without uploading. */
export const create = (target: Target, files: AppFiles, message?: string) =>
  call(target, "POST", "deployments", {
    files: manifestOf(files),
    ...(message === undefined ? {} : { message })
  })

export const upload = (
  target: Target,
  content: string | Uint8Array<ArrayBuffer>,
  hash = sha256(bytesOf(content))
) => call(target, "PUT", `blobs/${hash}`, bytesOf(content))

/** Creates a deployment, uploads what is missing and finalizes it. */
export const deploy = Effect.fnUntraced(function* (
  target: Target,
  files: AppFiles,
  { activate = true }: { readonly activate?: boolean } = {}
) {
  const created = yield* create(target, files)
  assert.strictEqual(created.status, 200, JSON.stringify(created.body))
  const missing = at(created.body, "missing")
  for (const content of Object.values(files)) {
    if (!Array.isArray(missing) || !missing.includes(sha256(bytesOf(content)))) continue
    const stored = yield* upload(target, content)
    assert.strictEqual(stored.status, 200, JSON.stringify(stored.body))
  }
  const id = String(at(created.body, "deploymentId"))
  const done = yield* call(target, "POST", `deployments/${id}/finalize`, { activate })
  assert.strictEqual(done.status, 200, JSON.stringify(done.body))
  return { id, version: Number(at(done.body, "version")), url: String(at(done.body, "url")) }
})

/** A deployment that waits for a file, for tests of every endpoint. */
export const makeUnfinished = Effect.fnUntraced(function* (target: TestTarget) {
  const content = yield* Effect.sync(() => `<p>${crypto.randomUUID()}`)
  const { body } = yield* create(target, { "index.html": content })
  return {
    content,
    ref: String(at(body, "deploymentId")),
    sha256: String(at(body, "missing", 0))
  }
})

export interface Page {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Requests a path of a host: `fetch` would set the `Host` header itself. */
export const visit = (
  url: string,
  host: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = "GET"
) =>
  Effect.callback<Page>((resume) => {
    const { port } = new URL(url)
    const sent = httpRequest(
      { port, host: "127.0.0.1", path, method, headers: { host, ...headers }, agent: false },
      (response) => {
        const pieces: Array<Buffer> = []
        response.on("data", (piece: Buffer) => pieces.push(piece))
        response.on("end", () =>
          resume(
            Effect.succeed({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(pieces)
            })
          )
        )
      }
    )
    sent.on("error", (error) => resume(Effect.die(error)))
    sent.end()
  })
