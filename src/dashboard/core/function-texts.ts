/** Texts of the view of Functions. */

const seconds = (millis: number): string => `${Math.ceil(millis / 1000)} s`

/** The service measures only what has a limit. */
const unbounded = "No limit"

export const functionTexts = {
  functions: {
    title: "Functions",
    lead:
      "Code of yours that the service runs: requests, crons, queues and hooks, with databases, files and " +
      "secrets.",
    tabs: {
      state: "State",
      versions: "Versions",
      logs: "Logs",
      failed: "Dead letters",
      database: "Database",
      secrets: "Secrets"
    },
    on: "On",
    off: "Off",
    suspended: "Suspended",
    enable: "Turn on",
    enabled: "Functions are on.",
    disable: "Turn off",
    disableTitle: (env: string) => `Turn off the functions of ${env}`,
    disableText:
      "Calls get an error at once, and crons and queues wait. Code, data and secrets stay, so you can turn " +
      "them on again.",
    disabled: "Functions are off.",
    offTitle: "Functions are off",
    offText:
      "They run beside your game without a server of your own. Turn them on here, or deploy a first version " +
      "from a terminal.",
    deploy: "Make and deploy functions from a terminal",
    deployText: (env: string) =>
      `npx svc functions init\nnpx svc functions deploy --enable --env ${env}`,
    reasons: {
      balance: "Suspended, because the account owes money. They run again once it is paid.",
      abuse: "Suspended by the operator of this service, for abuse. Ask the operator."
    },
    toMoney: "Top up",
    state: "State",
    status: "Status",
    live: "Live",
    nothingLive: "nothing yet",
    version: (value: number) => `Version ${value}`,
    url: "Called at",
    limits: "Limits of a call",
    cpu: "CPU time of a call",
    millis: (value: number) => `${value.toLocaleString("en")} ms`,
    subRequests: "Requests of a call",
    changeLimits: "Change limits",
    cpuLabel: "CPU time of a call, in milliseconds",
    cpuHint: (max: number) => `1 to ${max.toLocaleString("en")}. A call that takes more is ended.`,
    subRequestsLabel: "Requests that a call may send",
    subRequestsHint: "0 to 1,000.",
    save: "Save",
    limitsSaved: "The limits are changed.",
    cpuMinute: "CPU time of a minute",
    cpuUsed: (usedMs: number, maxMs: number) =>
      maxMs === 0 ? unbounded : `${seconds(usedMs)} of ${seconds(maxMs)}`,
    cpuWait: (waitMs: number) => `Used up: calls begin again in ${seconds(waitMs)}`,
    storage: "Storage",
    storageUsed: (used: string, max: string) => (max === "" ? unbounded : `${used} of ${max}`),
    storageStates: {
      full: "Full: writes are refused",
      over: "Too much: the code is stopped until data is deleted"
    },
    objects: "Durable objects",
    crons: "Crons",
    cronsLead: "In UTC: minute, hour, day of the month, month, day of the week.",
    next: "next",
    noCrons: "The live version has no cron.",
    resources: "What they store",
    resourcesLead: "Data stays when you deploy or go back.",
    noResources: "The live version has no database, no storage and no queue.",
    binding: "Name",
    kind: "Kind",
    stored: "Stored",
    unbound: "of an earlier version",
    kinds: { databases: "database", kv: "key-value", files: "files", queues: "queue" },
    messages: (value: number) =>
      `${value.toLocaleString("en")} ${value === 1 ? "message waits" : "messages wait"}`,
    remove: "Delete functions",
    removeLead: "What is deleted is gone for good.",
    removeCode: "Delete the code",
    removeCodeTitle: (slug: string) => `Delete all versions of ${slug}`,
    removeCodeText: "All versions go. Databases, files and secrets stay for the next deployment.",
    purge: "Delete code and data",
    purgeTitle: (slug: string) => `Delete the code and all data of ${slug}`,
    purgeText:
      "All versions go, and all databases, key-value pairs, files, queues and secrets of this environment.",
    removed: "Deleted.",
    versions: "Versions",
    versionsLead: "The newest 20 are kept, and any of them can be live again.",
    noVersions: "Nothing is deployed",
    noVersionsText: "Run this beside your game. Each deployment appears here as a version.",
    modules: "Modules",
    activateText:
      "Calls reach this version at once. Databases and other data stay as they are, so check that its code " +
      "fits them.",
    activateModules: "Modules of what is live, and of this version",
    sameModules: "Both versions have modules of the same names and sizes.",
    logs: "Logs",
    logsLead: "What functions wrote with console.log, and what went wrong. Kept for a week.",
    level: "Level",
    allLevels: "All levels",
    levels: { debug: "debug", info: "info", warn: "warn", error: "error" },
    filter: "Filter",
    pause: "Pause",
    resume: "Resume",
    follows: "Live",
    paused: "Paused",
    reconnects: "Not current",
    noLogs: "Nothing was logged yet",
    noLogsText: "A line appears here within two seconds of console.log in a function.",
    noMatch: "No line matches the filter.",
    lineVersion: (value: number) => `v${value}`,
    failed: "Dead letters",
    failedLead:
      "Messages of queues and events for hooks that failed five times. The newest 1,000 are kept for a week.",
    queue: "Queue or hook",
    allQueues: "All queues and hooks",
    noFailed: "No dead letter",
    noFailedText:
      "What a queue or a hook cannot handle in five attempts appears here, to deliver again or delete.",
    toLogs: "See the logs",
    failedKinds: { message: "queue", event: "hook" },
    attempts: (value: number) => `${value} ${value === 1 ? "attempt" : "attempts"}, sent`,
    failedAt: "failed",
    bodyOf: (id: string) => `Body of ${id}`,
    binaryOf: (id: string, type: string) => `Body of ${id} (${type}, as base64)`,
    retry: "Retry",
    retryTitle: (id: string) => `Retry ${id}`,
    retried: (id: string) => `${id} is delivered again. It comes back if it fails five more times.`,
    deleteFailed: "Delete",
    deleteFailedTitle: (id: string) => `Delete ${id}`,
    deleteFailedText: "Its content is gone for good.",
    failedDeleted: (id: string) => `${id} is deleted.`,
    database: "Query",
    databaseLead:
      "Runs one statement of SQLite on the live version's database, and is in the audit log.",
    databaseName: "Database",
    sql: "Statement",
    run: "Run",
    productionQuery: "This is production: a statement changes the data of real players.",
    noDatabase: "There is no database",
    noDatabaseText:
      "A version with a binding of the type db has one. Name it in svc.functions.json, then deploy.",
    result: "Result",
    resultRows: "Rows of the result",
    rows: (value: number) => `${value.toLocaleString("en")} ${value === 1 ? "row" : "rows"}`,
    firstRows: (value: number) => `the first ${value.toLocaleString("en")} rows`,
    affected: (value: number) =>
      `${value.toLocaleString("en")} ${value === 1 ? "row" : "rows"} changed`,
    lastId: (value: number) => `last id ${value}`,
    null: "NULL",
    blob: (value: number) => `${value} bytes`,
    secrets: "Secrets",
    secretsLead: "Stored encrypted. Code that binds one by name reads it; nothing shows it again.",
    noSecrets: "No secret",
    noSecretsText: "Set one below. A function reads it as env.NAME, if its version binds the name.",
    secretName: "Name",
    secretNameHint: "Upper-case letters, digits and underscores, such as API_KEY.",
    secretValue: "Value",
    updated: "Set",
    setSecret: "Set a secret",
    setSecretLead: "A name that exists gets the new value.",
    set: "Set",
    secretSet: (name: string) => `${name} is set.`,
    deleteSecret: "Delete",
    deleteSecretTitle: (name: string) => `Delete ${name}`,
    deleteSecretText: "Functions that bind it get nothing from the next call on.",
    secretDeleted: (name: string) => `${name} is deleted.`
  }
} as const
