/**
 * Bytes of saves: `save_counts.bytes` has the total of a player. A trigger counts, since a runner of the
 * release before writes saves, too. `growth` of a save is what the last write added, and the other two
 * columns bound it; a write that adds nothing always passes. A check on `saves` could not: it would see
 * the row of an upsert before the conflict. Runners of the release before do not set `growth`, and get
 * none of the errors, which they do not know.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Writers lock `saves` first, so this order cannot deadlock with them.
  yield* sql`lock table saves, save_counts in access exclusive mode`
  yield* sql`
    alter table saves add column growth int not null default 0,
      add column guest_bytes_most bigint, add column environment_room bigint`
  yield* sql`alter table save_counts add column bytes bigint not null default 0`
  yield* sql`
    update save_counts c set bytes = s.bytes
    from (select player_id, environment_id, sum(size) as bytes from saves group by 1, 2) s
    where c.player_id = s.player_id and c.environment_id = s.environment_id`
  yield* sql`create index save_counts_environment on save_counts (environment_id)`
  yield* sql`
    create function count_save_bytes() returns trigger language plpgsql as $$
    declare
      added bigint := new.size - coalesce(old.size, 0);
      total bigint;
    begin
      update save_counts set bytes = bytes + added
      where player_id = new.player_id and environment_id = new.environment_id
      returning bytes into total;
      if added <= 0 or added <> new.growth then
        return null;
      end if;
      if added > new.environment_room then
        raise exception 'the saves of the environment may grow by % bytes', new.environment_room
          using errcode = 'check_violation', constraint = 'environment_save_bytes';
      end if;
      if total > new.guest_bytes_most
        and exists (select from players where id = new.player_id and is_guest) then
        raise exception 'the saves of a guest exceed % bytes', new.guest_bytes_most
          using errcode = 'check_violation', constraint = 'guest_save_bytes';
      end if;
      return null;
    end $$`
  yield* sql`
    create trigger save_bytes_of_new after insert on saves
    for each row when (new.size > 0) execute function count_save_bytes()`
  yield* sql`
    create trigger save_bytes_of_changed after update on saves
    for each row when (new.size <> old.size) execute function count_save_bytes()`
})
