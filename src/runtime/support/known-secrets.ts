/** Secrets of this machine that curlew can read, so that a support bundle hides them also where nothing says that they are secret. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject } from '../../core/json.ts';
import { ADDON_JSON } from '../../core/layout.ts';
import { ADDON_JSON_LIMIT, parseAddonJson } from '../../core/package.ts';
import { secretsIn, type Secret } from '../../core/secret.ts';
import { readYaml } from '../../formats/yaml/yaml.ts';
import { kubeconfigPaths } from '../../cluster/kube/session.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { namedSecrets, withoutSecrets } from '../../spec/secret-settings.ts';
import { runsOf } from '../prepare/run-folder.ts';
import { readSavedRequest } from '../prepare/saved-request.ts';
import { packageTexts } from './package-texts.ts';
import { environmentSecrets } from './redact.ts';

const FILE_LIMIT = 1 << 20;

interface Machine {
  /** The install folder. */
  readonly directory: string;
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Files that this user cannot read are not in the bundle either. */
export async function knownSecrets({ directory, root, env }: Machine): Promise<readonly Secret[]> {
  const home = env['HOME'] ?? '/root';
  const kubernetes = join(root, 'etc/kubernetes');
  const units = ['containerd', 'kubelet', 'docker'].map((name) => join(root, `etc/systemd/system/${name}.service.d`));
  const files = [
    ...kubeconfigPaths(env),
    ...['.kube/config', '.aws/credentials', '.docker/config.json', '.netrc'].map((name) => join(home, name)),
    join(root, 'etc/environment'),
    join(root, 'etc/containerd/config.toml'),
    ...(await filesIn(kubernetes)),
    ...(await filesIn(join(kubernetes, 'curlew'))),
    ...(await Promise.all(units.map(filesIn))).flat(),
  ];
  const inFiles = await Promise.all(files.map(async (path) => secretsInText(await textOf(path))));
  return [...environmentSecrets(env), ...inFiles.flat(), ...(await settingsSecrets(directory))];
}

async function filesIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => /\.(?:conf|env|yaml)$/.test(name)).map((name) => join(folder, name));
}

async function textOf(path: string): Promise<string> {
  const content = await readLimited(path, FILE_LIMIT).catch(() => undefined);
  return content?.toString('utf8') ?? '';
}

/** The text is YAML, JSON, or lines such as `NAME=value`. */
function secretsInText(text: string): readonly Secret[] {
  const lines = text.matchAll(
    /^[ \t]*(?:export |Environment=)?["']?([A-Za-z_][\w-]*)[ \t]*=[ \t]*["']?(.*?)["']?[ \t]*$/gm,
  );
  const logins = text.matchAll(/\bpassword[ \t]+(\S+)/g);
  // A login to a registry is the base64 of user:password, of which programs print the password.
  const encoded = [...text.matchAll(/\bauth["']?[ \t]*[:=][ \t]*["']?([\w+/]{4,}=*)/g)];
  const passwords = encoded.map(([, login = '']) => /:([^]+)/.exec(Buffer.from(login, 'base64').toString())?.[1]);
  return [
    ...namedSecrets(readYaml('', text).value),
    ...[...lines].flatMap(([, name = '', value = '']) => environmentSecrets({ [name]: value })),
    ...[...logins].flatMap(([, value = '']) => secretsIn(value)),
    ...passwords.flatMap(secretsIn),
  ];
}

/** Only runs that may still be repeated have saved settings. */
async function settingsSecrets(directory: string): Promise<readonly Secret[]> {
  const schemas = new Map<string, unknown>();
  for (const { name, title, text } of await packageTexts(directory, ADDON_JSON, ADDON_JSON_LIMIT)) {
    try {
      schemas.set(name, parseAddonJson(text, title).settings);
    } catch {
      // Its settings are judged by their names.
    }
  }
  const found: Secret[] = [];
  for (const run of await runsOf(directory).catch(() => [])) {
    const { variables = [], settings = {} } = (await readSavedRequest(directory, run).catch(() => undefined)) ?? {};
    found.push(...environmentSecrets(Object.fromEntries(variables)));
    for (const [name, entry] of Object.entries(settings)) {
      if (!isObject(entry)) continue;
      const shown = new Set(textsIn(withoutSecrets(entry, schemas.get(name)).shown));
      found.push(...textsIn(entry).flatMap((text) => (shown.has(text) ? [] : secretsIn(text))));
    }
  }
  return found;
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string' || typeof value === 'number') return [String(value)];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
