/**
 * Requests to an S3-compatible store: signed, with a timeout, and tried again when the store fails.
 * Addresses name the bucket in the path, which all such stores understand.
 */
import { AwsClient } from "aws4fetch"
import { Data, Effect, Redacted } from "effect"
import type { S3Settings } from "../settings/hosting.ts"
import { BlobStoreError } from "./store.ts"

/** A response that says no; `code` is that of the store, such as `NoSuchKey`. */
class Refused extends Data.TaggedError("Refused")<{
  readonly status: number
  readonly code: string
}> {
  override readonly message = `the store answered ${this.status} ${this.code}`
}

export interface S3Request {
  readonly operation: string
  readonly method: "GET" | "PUT" | "DELETE"
  /** The key of an object below the prefix; undefined: the bucket. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Blob
  /** Reads the response. A retry calls it again. */
  readonly read: (response: Response) => Promise<void>
}

const timeoutMillis = 60_000

/** Number of immediate retries: mostly the store has closed a connection that was idle. */
const retries = 2

/** Searched characters of an error response. A longer one is not from such a store. */
const errorMaxCharacters = 10_000

const refusalOf = async (response: Response): Promise<Refused> => {
  const text = (await response.text()).slice(0, errorMaxCharacters)
  const [, code = ""] = /<Code>([A-Za-z]{1,100})<\/Code>/.exec(text) ?? []
  return new Refused({ status: response.status, code })
}

const isWorthRetrying = (cause: unknown): boolean =>
  !(cause instanceof Refused) || cause.status >= 500

const reasonOf = (cause: unknown): unknown =>
  cause instanceof TypeError && cause.cause !== undefined ? cause.cause : cause

/** Sends requests to the store of the settings. Fails with `NoSuchKey` where there is no object. */
export const makeS3Client = ({
  accessKeyId,
  bucket,
  endpoint,
  prefix,
  region,
  secret
}: S3Settings) => {
  const aws = new AwsClient({
    accessKeyId,
    secretAccessKey: Redacted.value(secret),
    service: "s3",
    region
  })
  const addressOf = ({ key, query }: S3Request): string => {
    const path = key === undefined ? "" : `/${prefix}${key}`
    const search = query === undefined ? "" : `?${String(new URLSearchParams(query))}`
    return `${endpoint}/${bucket}${path}${search}`
  }
  const attempt = async (request: S3Request): Promise<void> => {
    const { body, headers = {}, method } = request
    const signed = await aws.sign(addressOf(request), {
      method,
      headers,
      ...(body === undefined ? {} : { body })
    })
    const signal = AbortSignal.timeout(timeoutMillis)
    const response = await fetch(signed, { signal, redirect: "error" })
    if (!response.ok) throw await refusalOf(response)
    await request.read(response)
  }
  return (request: S3Request): Effect.Effect<void, BlobStoreError> =>
    Effect.tryPromise({ try: () => attempt(request), catch: reasonOf }).pipe(
      Effect.retry({ times: retries, while: isWorthRetrying }),
      Effect.mapError((cause) => new BlobStoreError({ operation: request.operation, cause }))
    )
}

/** Whether a request failed since there is no such object. */
export const isNoSuchKey = ({ cause }: BlobStoreError): boolean =>
  cause instanceof Refused && cause.code === "NoSuchKey"
