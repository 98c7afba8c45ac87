/** Settings of hosted apps. */
import { Schema } from "effect"
import { blobsIssue, blobsOf, blobVariables, type S3Settings } from "./blobs.ts"
import { HostName, NameServers, whole } from "./values.ts"

export interface HostingSettings {
  /** Hosting domain: apps are at `<label>.<domain>`. If undefined, hosts serve none. */
  readonly domain: string | undefined
  /** Most bytes of all files of an environment. */
  readonly environmentBytes: number
  /** Name servers that are asked for the proofs of custom domains; undefined: those of the system. */
  readonly nameServers: ReadonlyArray<string> | undefined
  readonly retentionDays: number
  /** Days for which hashed files of a version are served after it was live. */
  readonly staleDays: number
  /** The bucket of the files; undefined: they are in a folder of the data directory. */
  readonly s3: S3Settings | undefined
}

/** The variables of hosted apps and of their files. */
export const hostingVariables = {
  SVC_HOSTING_DOMAIN: Schema.optionalKey(HostName),
  SVC_NAME_SERVERS: Schema.optionalKey(NameServers),
  SVC_ENVIRONMENT_BLOB_BYTES: whole(0, 2 ** 50),
  SVC_DEPLOYMENT_RETENTION_DAYS: whole(0, 36_500),
  SVC_HOSTING_STALE_DAYS: whole(0, 3650),
  ...blobVariables
}

const Variables = Schema.Struct(hostingVariables)

type Variables = typeof Variables.Type & {
  readonly NODE_ENV: string
  readonly SVC_BASE_URL?: URL
}

export const hostingOf = (env: Variables): HostingSettings => ({
  domain: env.SVC_HOSTING_DOMAIN ?? (env.NODE_ENV === "production" ? undefined : "localhost"),
  environmentBytes: env.SVC_ENVIRONMENT_BLOB_BYTES,
  nameServers: env.SVC_NAME_SERVERS,
  retentionDays: env.SVC_DEPLOYMENT_RETENTION_DAYS,
  staleDays: env.SVC_HOSTING_STALE_DAYS,
  s3: blobsOf(env)
})

/**
 * Returns the reason why the service can serve no apps below this domain or store no files, or
 * undefined.
 */
export const hostingIssue = (env: Variables) => {
  const { SVC_BASE_URL: baseUrl, SVC_HOSTING_DOMAIN: domain } = env
  return domain !== undefined && baseUrl?.hostname.endsWith(`.${domain}`) === true
    ? {
        path: ["SVC_HOSTING_DOMAIN"],
        issue: "must not be above the host of SVC_BASE_URL: each host below it is that of an app"
      }
    : blobsIssue(env)
}
