/** Runs inside workerd as the binding `svc`: the server API of the environment, without a key. */
const encode = encodeURIComponent

export default (env) => {
  const call = async (method, path, body) => {
    const response = await env.host(method, `/api${path}`, body && JSON.stringify(body))
    const text = await response.text()
    const answer = text === "" ? undefined : JSON.parse(text)
    if (response.ok) return answer
    const {
      code = "unavailable",
      message = `status ${response.status}`,
      details
    } = answer?.error ?? {}
    throw Object.assign(new Error(message), { code, status: response.status, details })
  }
  const player = (id) => `/players/${encode(id)}`
  const save = (id, key) => `${player(id)}/saves/${encode(key)}`
  return {
    players: {
      get: async (id) => (await call("GET", player(id))).player,
      ban: async (id, terms = {}) => (await call("POST", `${player(id)}/ban`, terms)).player,
      unban: async (id) => (await call("POST", `${player(id)}/unban`, {})).player
    },
    saves: {
      list: async (id) => (await call("GET", `${player(id)}/saves`)).saves,
      get: (id, key) => call("GET", save(id, key)),
      put: (id, key, data, { ifVersion } = {}) => call("PUT", save(id, key), { data, ifVersion }),
      delete: async (id, key, { ifVersion } = {}) => {
        await call("DELETE", save(id, key), { ifVersion })
      }
    },
    stats: {
      get: async (id) => (await call("GET", `${player(id)}/stats`)).stats,
      report: (id, stats) => call("POST", `${player(id)}/stats`, { stats })
    },
    rooms: {
      list: async ({ mode } = {}) => {
        const query = mode === undefined ? "" : `?mode=${encode(mode)}`
        return (await call("GET", `/rooms${query}`)).rooms
      }
    },
    channels: {
      send: async (name, type, data) => {
        const path = `/channels/${encode(name)}/messages`
        return (await call("POST", path, { type, data })).delivered
      }
    }
  }
}
