/** What a server keeps of what is written: a definition of an older version drops fields that it does not know. */
import { canonicalJson } from '../../../core/digest.ts';
import { fieldsOf, isObject, listOf } from '../../../core/json.ts';
import { CHANNEL_API_VERSION } from '../../../cluster/channel/channel.ts';
import { groupOf, type Resource } from '../../../cluster/kube/resources.ts';
import type { Values } from '../../rollout/fleet.ts';

export class StoredStatuses {
  /** By object: what was written, and what the server made of it, if that is something else. */
  readonly #last = new Map<string, { readonly written: string; readonly stored: string }>();
  readonly #reported = new Set<string>();
  readonly #report: (text: string) => void;

  constructor(report: (text: string) => void) {
    this.#report = report;
  }

  /** Would writing this status change nothing of the stored one? */
  isSame(uid: string, status: Values, stored: unknown): boolean {
    const [written, text] = [canonicalJson(status), canonicalJson(stored ?? {})];
    const last = this.#last.get(uid);
    return written === text || (last?.written === written && last.stored === text);
  }

  /** Remembers what has become of a status, and names a definition that drops some of it once. */
  remember(resource: Resource, uid: string, status: Values, stored: unknown): void {
    if (canonicalJson(status) === canonicalJson(stored ?? {})) {
      this.#last.delete(uid);
      return;
    }
    this.#last.set(uid, { written: canonicalJson(status), stored: canonicalJson(stored ?? {}) });
    const lost = lostIn(status, stored);
    const name = `${resource.plural}.${groupOf(resource)}`;
    if (lost === undefined || this.#reported.has(name)) return;
    this.#reported.add(name);
    const isOurs = resource.apiVersion === CHANNEL_API_VERSION;
    const next = isOurs ? 'curlew hub manifests | kubectl apply -f - updates it' : 'update it';
    this.#report(`the CustomResourceDefinition ${name} is outdated: it does not keep status.${lost}; ${next}`);
  }
}

/** The first field of the one that the other does not have. */
function lostIn(written: unknown, stored: unknown): string | undefined {
  if (Array.isArray(written)) {
    const all = listOf(stored);
    return written.map((item, at) => lostIn(item, all[at])).find((lost) => lost !== undefined);
  }
  if (!isObject(written)) return undefined;
  const other = fieldsOf(stored);
  for (const [key, value] of Object.entries(written)) {
    if (!(key in other)) return key;
    const lost = lostIn(value, other[key]);
    if (lost !== undefined) return `${key}.${lost}`;
  }
  return undefined;
}
