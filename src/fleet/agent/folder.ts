/**
 * The folder of an agent: `/var/lib/curlew/agent`, below `--root`, with mode 0700. `register` writes it, and `run` reads it.
 *
 * - `agent.json`: which cluster it is, which hub it obeys, and whose content it accepts. Written once for each registration.
 * - `kubeconfig`: the hub, with the authority, the client certificate and its key in the file itself (0600). Replaced as a whole when
 *   the certificate is renewed: an API that is open reads it again with its next request.
 * - `request.json`: a key whose certificate has not arrived yet (0600).
 *
 * Everything else in the folder belongs to `run`.
 */
import { chmod, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { CurlewError } from '../../core/errors.ts';
import { closed, readJson, type Read } from '../../core/schema.ts';
import { secret, type Secret } from '../../core/secret.ts';
import { clusterName } from '../upstream/kinds.ts';
import { readPublicKey, type TrustedKey } from '../../formats/signing/keys.ts';
import { clusterOfUser } from '../hub/identity.ts';
import { formatKubeconfig, agentKubeconfig, type HubKubeconfig } from '../hub/kubeconfig.ts';
import { claim } from '../../platform/files/claim.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { readOwnFile, writeStateFile } from '../../platform/files/state-file.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';

const LIMIT = 1 << 20;
const FORMAT = 1;
const REGISTER = 'run curlew agent register with a token of the hub';

const settings = closed({
  format: v.literal(FORMAT),
  cluster: clusterName,
  /** The uid of the hub's namespace kube-system, which is also the field `hub` of each ClusterAddon. */
  hub: v.pipe(v.string(), v.uuid()),
  /** Public keys in PEM. A package, manifest or chart needs a statement of one of them. */
  keys: v.array(v.string()),
  /** Content without a statement is accepted. */
  allowUnsigned: v.boolean(),
});
type Written = Read<typeof settings>;

export interface AgentSettings extends Omit<Written, 'format' | 'keys'> {
  readonly keys: readonly TrustedKey[];
}

const request = closed({
  format: v.literal(FORMAT),
  user: v.pipe(
    v.string(),
    v.check((user) => clusterOfUser(user) !== undefined, 'not the user of an agent'),
  ),
  /** PKCS#8 in PEM. */
  key: v.string(),
  /** Its name at the hub, which the hub has made, and when, in milliseconds since 1970. */
  name: v.exactOptional(v.string()),
  at: v.exactOptional(v.number()),
});
/** A request for a certificate that has not arrived yet. */
export type PendingRequest = Omit<Read<typeof request>, 'format' | 'key'> & { readonly key: Secret };

export class AgentFolder {
  readonly path: string;
  /** For `KUBECONFIG`. */
  readonly kubeconfig: string;
  readonly #settings: string;
  readonly #request: string;

  /** `root`: the folder under which the file system of the machine is; default: `/`. */
  constructor(root = '/') {
    this.path = join(root, 'var/lib/curlew/agent');
    this.kubeconfig = join(this.path, 'kubeconfig');
    this.#settings = join(this.path, 'agent.json');
    this.#request = join(this.path, 'request.json');
  }

  /** Creates it. `BUSY` while another process registers, unregisters or renews. */
  async claim(): Promise<AsyncDisposable> {
    const made = await makeFolder(this.path);
    await chmod(this.path, 0o700);
    // A token works once: after a power failure, the folder must not be gone with what came for it.
    for (const folder of new Set([this.path, dirname(this.path), ...made].map((one) => dirname(one))))
      await syncFolder(folder);
    return claim(this.#settings);
  }

  /** `NOT_FOUND` if no registration has succeeded, `FILE_UNUSABLE` for files that others may write. */
  async read(): Promise<AgentSettings> {
    const [settings, kubeconfig] = [await this.readSettings(), await this.readKubeconfig()];
    if (settings !== undefined && kubeconfig !== undefined) return settings;
    throw new CurlewError('NOT_FOUND', `cannot read ${this.path}: this site is not registered at a hub`, {
      hint: REGISTER,
    });
  }

  /** Undefined before a registration; they are there while it waits. */
  async readSettings(): Promise<AgentSettings | undefined> {
    const text = await readOwnFile(this.#settings, LIMIT);
    if (text === undefined) return undefined;
    const { format: _format, keys, ...others } = this.#parse(settings, text, this.#settings);
    return { ...others, keys: keys.map((pem, place) => readPublicKey(pem, `${this.#settings}, key ${place + 1}`)) };
  }

  async writeSettings({ keys, ...others }: AgentSettings): Promise<void> {
    const texts = keys.map(({ key }) => key.export({ type: 'spki', format: 'pem' }).toString());
    await writeStateFile(this.#settings, encode({ ...others, keys: texts }));
  }

  async readKubeconfig(): Promise<HubKubeconfig | undefined> {
    const text = await readOwnFile(this.kubeconfig, LIMIT);
    return text === undefined ? undefined : agentKubeconfig(text, this.#bad(this.kubeconfig));
  }

  async writeKubeconfig(config: HubKubeconfig): Promise<void> {
    await writeStateFile(this.kubeconfig, formatKubeconfig(config).reveal());
  }

  async readRequest(): Promise<PendingRequest | undefined> {
    const text = await readOwnFile(this.#request, LIMIT);
    if (text === undefined) return undefined;
    const { format: _format, key, ...others } = this.#parse(request, text, this.#request);
    return { ...others, key: secret(key) };
  }

  /** Undefined removes it. */
  async writeRequest(pending: PendingRequest | undefined): Promise<void> {
    if (pending === undefined) await rm(this.#request, { force: true });
    else await writeStateFile(this.#request, encode({ ...pending, key: pending.key.reveal() }));
  }

  /** Forgets hub, keys and certificate. What `run` has written stays. */
  async forget(): Promise<void> {
    for (const path of [this.kubeconfig, this.#request, this.#settings]) await rm(path, { force: true });
  }

  #bad(path: string): (what: string) => CurlewError {
    return (what) =>
      new CurlewError('FILE_UNUSABLE', `cannot read ${path}: ${what}`, { hint: `delete it, then ${REGISTER}` });
  }

  #parse<Schema extends v.GenericSchema>(schema: Schema, text: string, path: string): Read<Schema> {
    const bad = this.#bad(path);
    const other = (shown: string): CurlewError => bad(`its format ${shown} is of another version of curlew`);
    return readJson(schema, text, { bad, format: { only: FORMAT, other } });
  }
}

function encode(value: object): string {
  return `${JSON.stringify({ format: FORMAT, ...value }, undefined, 2)}\n`;
}
