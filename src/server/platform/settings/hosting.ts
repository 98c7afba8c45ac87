/** Settings of hosted apps. */

export interface HostingSettings {
  /** Apps are at `<label>.<domain>`; undefined: hosts serve none. */
  readonly domain: string | undefined
  /** Most bytes of all files of an environment. */
  readonly environmentBytes: number
  readonly retentionDays: number
}

interface Variables {
  readonly NODE_ENV: string
  readonly SVC_BASE_URL?: URL
  readonly SVC_HOSTING_DOMAIN?: string
  readonly SVC_ENVIRONMENT_BLOB_BYTES: number
  readonly SVC_DEPLOYMENT_RETENTION_DAYS: number
}

export const hostingOf = (env: Variables): HostingSettings => ({
  domain: env.SVC_HOSTING_DOMAIN ?? (env.NODE_ENV === "production" ? undefined : "localhost"),
  environmentBytes: env.SVC_ENVIRONMENT_BLOB_BYTES,
  retentionDays: env.SVC_DEPLOYMENT_RETENTION_DAYS
})

/** Why apps cannot be served below this domain, or undefined. */
export const hostingIssue = ({ SVC_BASE_URL: baseUrl, SVC_HOSTING_DOMAIN: domain }: Variables) =>
  domain !== undefined && baseUrl?.hostname.endsWith(`.${domain}`) === true
    ? {
        path: ["SVC_HOSTING_DOMAIN"],
        issue: "must not be above the host of SVC_BASE_URL: each host below it is that of an app"
      }
    : undefined
