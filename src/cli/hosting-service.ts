/** Calls of the CLI to the hosting endpoints. */
import { readFile } from "node:fs/promises"
import { Duration, Effect, Schedule } from "effect"
import { HttpClientRequest } from "effect/http"
import { Schema } from "effect"
import { Deployment, Hosting } from "#rpc/hosting/api"
import type { AppFile } from "./app-files.ts"
import { exitCodes, Failure } from "./failures.ts"
import { read, sendOk } from "./service.ts"
import type { Target } from "./target.ts"

/** A large manifest, or a file of 50 MB on a slow line. */
const uploadTimeout = Duration.minutes(30)

/** `POST /v1/deployments`. */
export const createDeployment = Effect.fnUntraced(function* (
  target: Target,
  files: ReadonlyArray<AppFile>,
  message: string | undefined
) {
  const request = HttpClientRequest.post("/v1/deployments").pipe(
    HttpClientRequest.bodyJsonUnsafe({
      files: files.map(({ path, sha256, size }) => ({ path, sha256, size })),
      ...(message === undefined ? {} : { message })
    })
  )
  const answer = yield* sendOk(target, request, { timeout: uploadTimeout, quiet: true })
  return yield* read(target.url, Deployment, answer)
})

const attempts = 4

/** `PUT /v1/blobs/:sha256`. Repeats what a lost connection or a busy service may have stopped. */
export const uploadFile = Effect.fnUntraced(function* (target: Target, file: AppFile) {
  const bytes = yield* Effect.tryPromise({
    try: () => readFile(file.source),
    catch: () =>
      new Failure({
        exitCode: exitCodes.usage,
        code: "usage",
        message: `Failed to read ${file.source}: it was there a moment ago.`
      })
  })
  const request = HttpClientRequest.put(`/v1/blobs/${file.sha256}`).pipe(
    HttpClientRequest.bodyUint8Array(bytes, "application/octet-stream")
  )
  yield* sendOk(target, request, { timeout: uploadTimeout, quiet: true }).pipe(
    Effect.retry({
      times: attempts - 1,
      schedule: Schedule.exponential("1 second"),
      while: ({ code }) => code === "unreachable" || code === "unavailable"
    })
  )
})

/** `POST /v1/deployments/:ref/finalize`. */
export const finalizeDeployment = Effect.fnUntraced(function* (
  target: Target,
  ref: string,
  activate: boolean
) {
  const request = HttpClientRequest.post(`/v1/deployments/${ref}/finalize`).pipe(
    HttpClientRequest.bodyJsonUnsafe({ activate })
  )
  return yield* read(target.url, Deployment, yield* sendOk(target, request))
})

/** `POST /v1/deployments/:ref/activate`. */
export const activateDeployment = Effect.fnUntraced(function* (target: Target, version: number) {
  const request = HttpClientRequest.post(`/v1/deployments/${version}/activate`)
  return yield* read(target.url, Deployment, yield* sendOk(target, request))
})

const Page = Schema.Struct({ deployments: Schema.Array(Deployment) })

/** `GET /v1/deployments`, newest first. */
export const listDeployments = Effect.fnUntraced(function* (target: Target, limit: number) {
  const request = HttpClientRequest.get(`/v1/deployments?limit=${limit}`)
  return (yield* read(target.url, Page, yield* sendOk(target, request))).deployments
})

/** `GET /v1/hosting`. */
export const readHosting = Effect.fnUntraced(function* (target: Target) {
  const answer = yield* sendOk(target, HttpClientRequest.get("/v1/hosting"))
  return yield* read(target.url, Hosting, answer)
})
