/** Names of the sockets of a configuration. Miniflare derives them from the order of the workers. */

export const socketNames = {
  main: "direct:0:default",
  admin: "direct:1:default",
  entry: "entry"
} as const
