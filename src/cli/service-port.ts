/**
 * Port of the service beside Vite's dev server: that of the command line, else that of the plugin, else the
 * first one that is free or has the service of this game.
 */
import { createServer } from "node:net"

/** Name of the port in Vite's config, by which `svc dev` hands its flag to the plugin. */
export const servicePortKey = "playerBackendServicePort"

const firstPort = 8080
/** Number of ports that are tried: so many games at once have a service of their own. */
const portsTried = 20

/** Returns the ports to try, in order. */
export const portsOf = (config: object, configured: number | undefined): ReadonlyArray<number> => {
  const given: unknown = Object.entries(config).find(([name]) => name === servicePortKey)?.[1]
  if (typeof given === "number") return [given]
  if (configured !== undefined) return [configured]
  return Array.from({ length: portsTried }, (_, index) => firstPort + index)
}

/** Whether a process can listen at a port. */
export const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.on("error", () => resolve(false))
    server.listen(port, () => server.close(() => resolve(true)))
  })
