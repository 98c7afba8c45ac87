/** Settings of hosted apps, and of the store of their files: a folder, or a bucket of an S3-compatible service. */
import { Schema } from "effect"
import { hosting } from "#rpc/hosting/limits"
import { type EnvironmentOf, type Issue, optional, setting, valuesOf } from "./table.ts"
import {
  bytes,
  days,
  HostName,
  HttpUrl,
  NameServers,
  Secret,
  textLike,
  textThat,
  whole,
  withoutSlash
} from "./values.ts"

/** `s3://bucket` or `s3://bucket/prefix`. */
const bucketUrlForm = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]*))?$/

/** Says that the folder of the data directory keeps the files: it is on a volume that all runners share. */
export const sharedFolder = "folder"

export const apps = {
  domain: optional("SVC_HOSTING_DOMAIN", HostName)`
    The domain below which apps are served, \`apps.example.net\`. Default outside production: \`localhost\`. See
    [hosting](../guides/hosting.md#in-production).`,
  nameServers: optional("SVC_NAME_SERVERS", NameServers)`
    The name servers that are asked for the TXT records of [custom domains](../guides/hosting.md#domains-of-your-own),
    comma-separated IPv4 addresses: \`1.1.1.1,8.8.8.8:53\`. Default: those of the system.`
}

export const deployments = {
  environmentBytes: setting("SVC_ENVIRONMENT_BLOB_BYTES", bytes, hosting.environmentBytes)`
    Most bytes of all files of the deployments of an environment. See [hosting](../guides/hosting.md).`,
  retentionDays: setting("SVC_DEPLOYMENT_RETENTION_DAYS", days, hosting.retentionDays)`
    Days for which a deployment is kept after it was live. The newest 20 are always kept.`,
  staleDays: setting("SVC_HOSTING_STALE_DAYS", whole(0, 3650), hosting.staleDays)`
    Days for which files with a hash in their name are served after their version was live, so that pages opened
    before a deploy find their parts. \`0\`: never.`
}

export const bucket = {
  url: optional(
    "SVC_BLOBS_URL",
    textThat(
      (text) => text === sharedFolder || bucketUrlForm.test(text),
      "s3://bucket, s3://bucket/prefix, or folder"
    )
  )`
    The bucket of the files of deployments: \`s3://bucket\` or \`s3://bucket/prefix\`. Absent: the folder \`blobs\` of
    the data directory; \`folder\` says that all runners share it on a volume. See
    [hosting](../guides/hosting.md#files-in-a-bucket).`,
  endpoint: optional("SVC_S3_ENDPOINT", HttpUrl)`
    The address of an S3-compatible service, such as \`https://minio.example.net\`. Default: that of AWS in the
    region.`,
  region: setting(
    "SVC_S3_REGION",
    textLike(/^[a-z0-9-]{1,64}$/, "the name of a region"),
    "us-east-1"
  )`
    The region of the bucket.`,
  accessKeyId: optional("AWS_ACCESS_KEY_ID", Schema.String)`
    The access key for the bucket; required with \`SVC_BLOBS_URL\`.`,
  secret: optional("AWS_SECRET_ACCESS_KEY", Secret)`
    The secret of that access key.`,
  cacheBytes: setting("SVC_BLOB_CACHE_BYTES", bytes, hosting.diskCacheBytes)`
    Most bytes of files from the bucket that a runner keeps in the data directory.`
}

type BucketEnvironment = EnvironmentOf<typeof bucket>

/** The bucket, with a prefix that is empty or ends with a slash; undefined: files are in a folder. */
const bucketOf = (env: BucketEnvironment) => {
  const { accessKeyId, cacheBytes, endpoint, region, secret, url = "" } = valuesOf(bucket, env)
  const [, name, path = ""] = bucketUrlForm.exec(url) ?? []
  if (name === undefined || accessKeyId === undefined || secret === undefined) return undefined
  const prefix = path.split("/").filter((segment) => segment !== "")
  return {
    bucket: name,
    prefix: prefix.map((segment) => `${segment}/`).join(""),
    endpoint: withoutSlash(endpoint) ?? `https://s3.${region}.amazonaws.com`,
    region,
    accessKeyId,
    secret,
    cacheBytes
  }
}
export type S3Settings = NonNullable<ReturnType<typeof bucketOf>>

interface Environment
  extends BucketEnvironment, EnvironmentOf<typeof apps>, EnvironmentOf<typeof deployments> {
  readonly NODE_ENV: string
  readonly SVC_BASE_URL?: URL
}

export const hostingOf = (env: Environment) => {
  const { domain, nameServers } = valuesOf(apps, env)
  return {
    ...valuesOf(deployments, env),
    /** Hosts serve no apps without one. */
    domain: domain ?? (env.NODE_ENV === "production" ? undefined : "localhost"),
    nameServers,
    s3: bucketOf(env)
  }
}

export const hostingIssues = (env: Environment): ReadonlyArray<Issue> => {
  const { SVC_BASE_URL: baseUrl, SVC_BLOBS_URL: blobs, SVC_HOSTING_DOMAIN: domain } = env
  const isAbove = domain !== undefined && baseUrl?.hostname.endsWith(`.${domain}`) === true
  const names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] as const
  const absent =
    blobs === undefined || blobs === sharedFolder
      ? []
      : names.filter((name) => env[name] === undefined)
  return [
    ...absent.map((name): Issue => ({
      path: [name],
      issue: "is required with SVC_BLOBS_URL: it opens the bucket"
    })),
    ...(isAbove
      ? [
          {
            path: ["SVC_HOSTING_DOMAIN"] as const,
            issue:
              "must not be above the host of SVC_BASE_URL: each host below it is that of an app"
          }
        ]
      : [])
  ]
}
