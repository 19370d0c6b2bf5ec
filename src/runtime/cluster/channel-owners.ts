/** Add-ons of a cluster that `curlew channel apply` keeps: runs on nodes leave them alone. Pure. */
import { jsonIn } from '../../core/json.ts';
import * as v from 'valibot';
import { CurlewError } from '../../core/errors.ts';
import type { AddonRef } from '../../core/ref.ts';
import { fits } from '../../core/schema.ts';
import type { Data } from '../../cluster/kube/config-map.ts';

const owned = v.object({ addon: v.string(), owner: v.pipe(v.string(), v.regex(/^(?:channel|fleet):/)) });

/** The channel of each recorded add-on, by name. What cannot be read is ignored: `curlew channel status` warns of it. */
export function channelOwners(data: Data): ReadonlyMap<string, string> {
  return new Map(
    Object.values(data).flatMap((text) => {
      const record = jsonIn(text);
      return fits(owned, record) ? [[record.addon, record.owner] as const] : [];
    }),
  );
}

/** `UNSUPPORTED` if a run would install or remove an add-on of a channel. Without a cluster, nothing is known of channels. */
export function refuseChannelAddons(
  owners: ReadonlyMap<string, string>,
  addons: readonly { readonly ref: Pick<AddonRef, 'name'>; readonly mode: string }[],
): void {
  const changed = addons.find(({ ref, mode }) => owners.has(ref.name) && (mode === 'install' || mode === 'remove'));
  if (changed === undefined) return;
  const { name } = changed.ref;
  const what = `cannot ${changed.mode} ${name}: ${owners.get(name)} keeps it in this cluster`;
  const remove = `curlew channel remove ${name}`;
  throw new CurlewError('UNSUPPORTED', what, {
    hint:
      changed.mode === 'remove'
        ? `${remove} first`
        : `omit ${name} from the spec; or delete it from the channel and run ${remove} first`,
  });
}
