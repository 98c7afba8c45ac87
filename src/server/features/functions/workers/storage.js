/**
 * Runs inside workerd, around the bindings that store: while the storage of the environment is full, they
 * refuse what would add to it. What reads and what deletes goes on.
 */
const storage = { isFull: false }

/** Says whether the storage is full, with each call. */
export const setFull = (isFull) => {
  storage.isFull = isFull
}

const refusal = () =>
  new Error("The storage of this environment is full: delete what is not needed.")

/** The first word of each statement; what only reads or deletes begins otherwise. */
const adds = (sql) =>
  String(sql)
    .split(";")
    .some((part) => {
      const text = part.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, " ").trim()
      if (/^(?:insert|replace|update|create|alter|reindex|vacuum)\b/i.test(text)) return true
      return /^with\b/i.test(text) && /\b(?:insert|update)\b/i.test(text)
    })

/** The same object with methods that are refused while the storage is full. */
const guarded = (target, { promised = [], thrown = {}, wrapped = [] }) =>
  new Proxy(target, {
    get(object, name) {
      const value = object[name]
      if (typeof value !== "function") return value
      if (promised.includes(name)) {
        return (...args) => (storage.isFull ? Promise.reject(refusal()) : value.apply(object, args))
      }
      return (...args) => {
        if (storage.isFull && thrown[name]?.(...args)) throw refusal()
        const result = value.apply(object, args)
        return wrapped.includes(name) ? guardedLater(result) : result
      }
    }
  })

const database = { thrown: { prepare: adds, exec: adds }, wrapped: ["withSession"] }
const upload = { promised: ["uploadPart"] }

const guardedLater = (result) => {
  if (typeof result.prepare === "function") return guarded(result, database)
  return typeof result.then === "function"
    ? result.then((made) => guarded(made, upload))
    : guarded(result, upload)
}

const rules = {
  db: database,
  kv: { promised: ["put"] },
  files: {
    promised: ["put"],
    thrown: { createMultipartUpload: () => true },
    wrapped: ["createMultipartUpload", "resumeMultipartUpload"]
  }
}

const known = new WeakMap()

/** The bindings of the player's modules; `types` are those of the ones that store. */
export const guardedEnv = (env, types) => {
  const made = known.get(env)
  if (made !== undefined) return made
  const guards = Object.entries(types).map(([name, type]) => [
    name,
    guarded(env[name], rules[type])
  ])
  const { __svc_authentic, ...rest } = env
  const all = { ...rest, ...Object.fromEntries(guards) }
  known.set(env, all)
  return all
}
