/** Runs inside workerd as the binding `svc`: the server API of the environment, without a key. */
/** Encodes a segment of a path. Dots alone would lead to another path; a hyphen names nothing, either. */
const encode = (id) => (/^\.{1,2}$/.test(id) ? "-" : encodeURIComponent(id))

export default (env) => {
  const call = async (method, path, body) => {
    const response = await env.host(method, `/api${path}`, body && JSON.stringify(body))
    const text = await response.text()
    const json = text === "" ? undefined : JSON.parse(text)
    if (response.ok) return json
    const {
      code = "unavailable",
      message = `status ${response.status}`,
      details
    } = json?.error ?? {}
    throw Object.assign(new Error(message), { code, status: response.status, details })
  }
  const admin = "/v1/admin"
  const player = (id) => `${admin}/players/${encode(id)}`
  const save = (id, key) => `${player(id)}/saves/${encode(key)}`
  const channel = (name) => `/v1/realtime/channels/${encode(name)}`
  const query = (name, value) => (value === undefined ? "" : `?${name}=${encode(value)}`)
  return {
    players: {
      get: async (id) => (await call("GET", `${player(id)}/profile`)).player,
      ban: async (id, terms = {}) => (await call("POST", `${player(id)}/ban`, terms)).player,
      unban: async (id) => (await call("POST", `${player(id)}/unban`)).player,
      verifyToken: async (token) =>
        (await call("POST", `${admin}/players/verify-token`, { token })).player
    },
    saves: {
      list: async (id) => (await call("GET", `${player(id)}/saves`)).saves,
      get: (id, key) => call("GET", save(id, key)),
      put: (id, key, data, { ifVersion } = {}) => call("PUT", save(id, key), { data, ifVersion }),
      delete: async (id, key, { ifVersion } = {}) => {
        await call("DELETE", save(id, key) + query("ifVersion", ifVersion))
      }
    },
    stats: {
      get: async (id) => (await call("GET", `${player(id)}/stats`)).stats,
      report: (id, stats) => call("POST", `${player(id)}/stats`, { stats })
    },
    rooms: {
      list: async ({ mode } = {}) =>
        (await call("GET", `${admin}/rooms${query("mode", mode)}`)).rooms
    },
    channels: {
      get: (name) => call("GET", channel(name)),
      put: (name, changes = {}) => call("PUT", channel(name), changes),
      delete: async (name) => {
        await call("DELETE", channel(name))
      },
      moderate: async (name, action) => {
        await call("POST", `${channel(name)}/moderate`, action)
      },
      send: async (name, type, data) =>
        (await call("POST", `${channel(name)}/messages`, { type, data })).delivered
    }
  }
}
