/** Secrets among the files of a fleet by which the charts of HelmChartProxies are downloaded. Pure. */
import type { ChartAccess } from '../../cluster/channel/channel.ts';
import type { Findings } from '../../cluster/channel/findings.ts';
import { isObject } from '../../core/json.ts';
import type { Read } from '../../core/schema.ts';
import { readYaml, type YamlPart } from '../../formats/yaml/yaml.ts';
import type { Values } from '../rollout/fleet.ts';
import { secretText } from './capi-objects.ts';
import type { HELM_CHART_PROXY } from './helm-chart-proxy.ts';

type Proxy = Pick<Read<typeof HELM_CHART_PROXY>, 'metadata' | 'spec'>;

export class ChartSecrets {
  /** Documents that look like a Secret, and are read only if one is named. */
  readonly #parts: YamlPart[] = [];
  #secrets: Map<string, Values> | undefined;

  add(part: YamlPart): void {
    this.#parts.push(part);
  }

  /** What a proxy names; a warning says what is not among the files. Undefined if there is nothing. */
  accessOf({ metadata, spec }: Proxy, findings: Findings): ChartAccess | undefined {
    const { credentials, tlsConfig } = spec;
    const textOf = (field: string, secret: { readonly name: string; readonly namespace?: string }, key: string) => {
      const title = `${secret.namespace ?? metadata.namespace ?? 'default'}/${secret.name}`;
      const text = this.#textIn(title, key);
      if (text !== undefined) return text;
      const why = `no Secret ${title} among the files has a text in ${key}`;
      const instead = field === 'credentials' ? 'log in on this machine: helm registry login' : TRUST;
      findings.ignored(['spec', field], field, why, `add it to the files, or ${instead}`);
      return undefined;
    };
    const logins = credentials && textOf('credentials', credentials.secret, credentials.key ?? 'config.json');
    const authorities = tlsConfig?.caSecret && textOf('tlsConfig', tlsConfig.caSecret, 'ca.crt');
    const trustsAll = tlsConfig?.insecureSkipTLSVerify;
    const isNone = logins === undefined && authorities === undefined && trustsAll !== true;
    return isNone ? undefined : { logins, authorities, trustsAll };
  }

  #textIn(title: string, key: string): string | undefined {
    this.#secrets ??= new Map(this.#parts.flatMap(({ text }) => secretsIn(readYaml('', text).value)));
    return secretText(this.#secrets.get(title) ?? {}, key);
  }
}

const TRUST = 'put the certificate of the authority into SSL_CERT_FILE or NODE_EXTRA_CA_CERTS';

/** The Secrets of a document, or of what kubectl prints for several, by namespace and name. */
function secretsIn(value: unknown): readonly (readonly [string, Values])[] {
  if (!isObject(value)) return [];
  const { kind, items, metadata } = value;
  if (kind === 'List' && Array.isArray(items)) return items.flatMap(secretsIn);
  if (kind !== 'Secret' || !isObject(metadata)) return [];
  const { namespace = 'default', name } = metadata;
  return [[`${String(namespace)}/${String(name)}`, value]];
}
