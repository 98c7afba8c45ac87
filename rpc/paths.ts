/** Paths that the service serves beside the endpoints of the API. */

/** Pages, documents and sockets. */
export const paths = {
  apiPage: "/docs/api",
  asyncapi: "/asyncapi.json",
  clientScript: "/sdk/client.js",
  confirm: "/-/confirm",
  /** The dashboard's page, its views and its files. */
  dashboard: "/dashboard",
  dashboardViews: "/dashboard/*",
  configSchema: "/v1/config/schema.json",
  demo: "/demo",
  disown: "/-/disown",
  docs: "/docs",
  docsPages: "/docs/*",
  mcp: "/mcp",
  metrics: "/metrics",
  openapi: "/openapi.json",
  realtime: "/v1/realtime",
  reset: "/-/reset",
  rpc: "/v1/rpc",
  servedHost: "/-/served-host",
  shared: "/s",
  verify: "/-/verify",
  voicePage: "/dev/voice"
} as const
