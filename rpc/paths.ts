/** Paths that the service answers beside the endpoints of the API: pages, documents and sockets. */

/** Pages and sockets beside the API. */
export const paths = {
  configSchema: "/v1/config/schema.json",
  docs: "/docs",
  metrics: "/metrics",
  openapi: "/openapi.json",
  realtime: "/v1/realtime",
  reset: "/-/reset",
  rpc: "/v1/rpc",
  verify: "/-/verify"
} as const
