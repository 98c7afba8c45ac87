/** The matchmaking queue, as the registry of entities lists it. */
import { entity } from "../definition.ts"
import { LocalQueues, MatchmakingQueueLive } from "./entity.ts"

const partsOf = (id: string) => {
  const [environmentId = "", mode = ""] = id.split("/")
  return { environmentId, mode }
}

export const matchmakingQueue = entity({
  word: "queue",
  local: LocalQueues.layer,
  behaviour: MatchmakingQueueLive,
  registry: LocalQueues,
  counts: [
    { metric: ["svc_queues", "Matchmaking queues on this node."], of: () => 1 },
    {
      metric: ["svc_queue_tickets", "Tickets waiting in the queues of this node."],
      of: ({ waiting }) => waiting
    }
  ],
  environmentOf: ({ waiting }, id) => (waiting > 0 ? partsOf(id).environmentId : undefined),
  live: ({ waiting }, id) => ({ queues: { mode: partsOf(id).mode, waiting } })
})
