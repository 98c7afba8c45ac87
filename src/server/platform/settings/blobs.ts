/** Settings of the store of blobs: a folder, or a bucket of an S3-compatible service. */
import { type Redacted, Schema } from "effect"
import { whole } from "./values.ts"

export interface S3Settings {
  readonly bucket: string
  /** Prefix of all keys; empty, or with a slash at its end. */
  readonly prefix: string
  /** Endpoint without a trailing slash. */
  readonly endpoint: string
  readonly region: string
  readonly accessKeyId: string
  readonly secret: Redacted.Redacted
  /** Most bytes of the files that a runner keeps on its disk. */
  readonly cacheBytes: number
}

/** `s3://bucket` or `s3://bucket/prefix`. */
const blobsUrlForm = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]*))?$/

/** Says that the folder of the data directory keeps the files: it is on a volume that all runners share. */
export const sharedFolder = "folder"

export const blobVariables = {
  SVC_BLOBS_URL: Schema.optionalKey(
    Schema.Union([
      Schema.Literal(sharedFolder),
      Schema.String.check(
        Schema.isPattern(blobsUrlForm, {
          message: "Expected s3://bucket, s3://bucket/prefix, or folder"
        })
      )
    ])
  ),
  SVC_S3_ENDPOINT: Schema.optionalKey(
    Schema.URLFromString.check(
      Schema.makeFilter(({ protocol }) => /^https?:$/.test(protocol), {
        message: "Expected a URL with http or https"
      })
    )
  ),
  SVC_S3_REGION: Schema.String.check(
    Schema.isPattern(/^[a-z0-9-]{1,64}$/, { message: "Expected the name of a region" })
  ),
  SVC_BLOB_CACHE_BYTES: whole(0, 2 ** 50),
  AWS_ACCESS_KEY_ID: Schema.optionalKey(Schema.String),
  AWS_SECRET_ACCESS_KEY: Schema.optionalKey(Schema.RedactedFromValue(Schema.String))
}

const Variables = Schema.Struct(blobVariables)
type Variables = typeof Variables.Type

/** Returns the bucket settings; undefined if blobs are in a folder of the data directory. */
export const blobsOf = (env: Variables): S3Settings | undefined => {
  const [, bucket, path = ""] = blobsUrlForm.exec(env.SVC_BLOBS_URL ?? "") ?? []
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secret } = env
  if (bucket === undefined || accessKeyId === undefined || secret === undefined) return undefined
  const region = env.SVC_S3_REGION
  const prefix = path.split("/").filter((segment) => segment !== "")
  const endpoint = env.SVC_S3_ENDPOINT?.href ?? `https://s3.${region}.amazonaws.com`
  return {
    accessKeyId,
    bucket,
    secret,
    region,
    endpoint: endpoint.replace(/\/+$/, ""),
    prefix: prefix.map((segment) => `${segment}/`).join(""),
    cacheBytes: env.SVC_BLOB_CACHE_BYTES
  }
}

/** Returns the issue of the first missing variable of a bucket, or undefined. */
export const blobsIssue = (env: Variables) => {
  if (env.SVC_BLOBS_URL === undefined || env.SVC_BLOBS_URL === sharedFolder) return undefined
  const names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] as const
  const absent = names.find((name) => env[name] === undefined)
  return absent === undefined
    ? undefined
    : { path: [absent], issue: "is required with SVC_BLOBS_URL: it opens the bucket" }
}
