/** Calls of the CLI to the hosting endpoints. */
import { readFile } from "node:fs/promises"
import { Duration, Effect, Schedule, Schema } from "effect"
import { HttpClientRequest } from "effect/http"
import { Deployment, Hosting } from "#rpc/hosting/api"
import type { AppFile } from "./app-files.ts"
import { usageFailure } from "./failures.ts"
import { call, requestOf, sendOk } from "./service.ts"
import type { Target } from "./target.ts"

/** A large manifest, or a file of 50 MB on a slow line. */
const uploadTimeout = Duration.minutes(30)

/** `POST /v1/deployments`. */
export const createDeployment = (
  target: Target,
  files: ReadonlyArray<AppFile>,
  message: string | undefined
) =>
  call(target, "POST /v1/deployments", Deployment, {
    body: {
      files: files.map(({ path, sha256, size }) => ({ path, sha256, size })),
      ...(message === undefined ? {} : { message })
    },
    timeout: uploadTimeout,
    quiet: true
  })

const attempts = 4

/** `PUT /v1/blobs/:sha256`. Repeats what a lost connection or a busy service may have stopped. */
export const uploadFile = Effect.fnUntraced(function* (target: Target, file: AppFile) {
  const bytes = yield* Effect.tryPromise({
    try: () => readFile(file.source),
    catch: () => usageFailure(`Failed to read ${file.source}: it was there a moment ago.`)
  })
  const request = requestOf(`PUT /v1/blobs/${file.sha256}`).pipe(
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
export const finalizeDeployment = (target: Target, ref: string, activate: boolean) =>
  call(target, `POST /v1/deployments/${ref}/finalize`, Deployment, { body: { activate } })

/** `POST /v1/deployments/:ref/activate`. */
export const activateDeployment = (target: Target, version: number) =>
  call(target, `POST /v1/deployments/${version}/activate`, Deployment)

const Page = Schema.Struct({ deployments: Schema.Array(Deployment) })

/** `GET /v1/deployments`, newest first. */
export const listDeployments = (target: Target, limit: number) =>
  Effect.map(
    call(target, `GET /v1/deployments?limit=${limit}`, Page),
    ({ deployments }) => deployments
  )

/** `GET /v1/hosting`. */
export const readHosting = (target: Target) => call(target, "GET /v1/hosting", Hosting)
