/** The flags of kURL's scripts, with the same syntax: `ha`, `labels=a=b`. Pure. */
import { argumentPlace, type Place } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { pathText } from '../core/field.ts';
import { nearest } from '../core/nearest.ts';
import { isRequestable, VERSION_FORMS } from './version.ts';
import type { Installer } from './installer.ts';
import { settingValue, withField, type GivenField } from './set.ts';
import { settingOf } from './settings.ts';
import type { Json } from '../formats/yaml/yaml.ts';

/** The meaning of a flag. */
export type FlagMeaning =
  /** A setting of the spec, `specName.field`. */
  | { readonly kind: 'setting'; readonly setting: string }
  /** A shell variable for hooks; `value` is its value if the flag takes none. */
  | { readonly kind: 'variable'; readonly variable: string; readonly value?: string; readonly repeats?: true }
  /** An option of the run itself. */
  | { readonly kind: 'overlay' | 'install-directory' }
  /** Accepted without effect; `why` is reported. */
  | { readonly kind: 'nothing'; readonly why: string; readonly value?: '' };

const setting = (name: string): FlagMeaning => ({ kind: 'setting', setting: name });
const variable = (name: string, value?: string): FlagMeaning => {
  return { kind: 'variable', variable: name, ...(value === undefined ? {} : { value }) };
};
const hosts = (name: string): FlagMeaning => ({ kind: 'variable', variable: name, repeats: true });
const nothing = (why: string): FlagMeaning => ({ kind: 'nothing', why, value: '' });

/** Flags in the order of kURL's documentation. */
export const FLAGS: Readonly<Record<string, FlagMeaning>> = {
  'installer-spec-file': { kind: 'overlay' },
  airgap: setting('kurl.airgap'),
  'kurl-registry-ip': variable('KURL_REGISTRY_IP'),
  'ekco-address': variable('EKCO_ADDRESS'),
  'ekco-auth-token': variable('EKCO_AUTH_TOKEN'),
  'kurl-install-directory': { kind: 'install-directory' },
  labels: variable('NODE_LABELS'),
  'storage-migration-ready-timeout': { kind: 'nothing', why: 'storage is not migrated' },
  'dismiss-host-packages-preflight': nothing('kURL has long ignored it'),
  yes: variable('ASSUME_YES', '1'),
  'primary-host': hosts('PRIMARY_HOST'),
  'secondary-host': hosts('SECONDARY_HOST'),
  'force-reapply-addons': nothing('kURL has long ignored it; --reapply installs add-ons that are already applied'),
  'skip-system-package-install': setting('kurl.skipSystemPackageInstall'),
  'exclude-builtin-preflights': setting('kurl.excludeBuiltinHostPreflights'),
  'exclude-builtin-host-preflights': setting('kurl.excludeBuiltinHostPreflights'),
  'app-version-label': setting('kotsadm.applicationVersionLabel'),
  ipv6: setting('kurl.ipv6'),
  'velero-restic-timeout': setting('velero.resticTimeout'),
  'velero-server-flags': setting('velero.serverFlags'),
  'auto-upgrades-enabled': nothing('kURL has long ignored it'),
  'additional-no-proxy-addresses': setting('kurl.additionalNoProxyAddresses'),
  'cert-key': setting('kubernetes.certKey'),
  'control-plane': setting('kubernetes.controlPlane'),
  'docker-registry-ip': setting('docker.dockerRegistryIP'),
  'ekco-enable-internal-load-balancer': setting('ekco.enableInternalLoadBalancer'),
  ha: setting('kubernetes.HACluster'),
  'kubernetes-cis-compliance': setting('kubernetes.cisCompliance'),
  'kubernetes-cluster-name': setting('kubernetes.clusterName'),
  'aws-exclude-storage-class': setting('aws.excludeStorageClass'),
  'ignore-remote-load-images-prompt': setting('kurl.ignoreRemoteLoadImagesPrompt'),
  'ignore-remote-upgrade-prompt': setting('kurl.ignoreRemoteUpgradePrompt'),
  'container-log-max-size': setting('kubernetes.containerLogMaxSize'),
  'container-log-max-files': setting('kubernetes.containerLogMaxFiles'),
  'kubernetes-max-pods-per-node': setting('kubernetes.maxPodsPerNode'),
  'kubeadm-token': setting('kubernetes.kubeadmToken'),
  'kubeadm-token-ca-hash': setting('kubernetes.kubeadmTokenCAHash'),
  'kubernetes-load-balancer-use-first-primary': setting('kubernetes.loadBalancerUseFirstPrimary'),
  'kubernetes-master-address': setting('kubernetes.masterAddress'),
  'kubernetes-version': setting('kubernetes.version'),
  'kubernetes-init-ignore-preflight-errors': setting('kubernetes.initIgnorePreflightErrors'),
  'kubernetes-upgrade-ignore-preflight-errors': setting('kubernetes.upgradeIgnorePreflightErrors'),
  'load-balancer-address': setting('kubernetes.loadBalancerAddress'),
  'preflight-ignore': setting('kurl.hostPreflightIgnore'),
  'host-preflight-ignore': setting('kurl.hostPreflightIgnore'),
  'preflight-ignore-warnings': nothing('preflight warnings stop a run only with host-preflight-enforce-warnings'),
  'host-preflight-enforce-warnings': setting('kurl.hostPreflightEnforceWarnings'),
  'preserve-docker-config': setting('docker.preserveConfig'),
  'preserve-firewalld-config': setting('firewalldConfig.preserveConfig'),
  'preserve-iptables-config': setting('iptablesConfig.preserveConfig'),
  'preserve-selinux-config': setting('selinuxConfig.preserveConfig'),
  'public-address': setting('kurl.publicAddress'),
  'private-address': setting('kurl.privateAddress'),
};

export interface GivenFlags {
  readonly settings: readonly (GivenField & { readonly place: Place })[];
  /** Variables in addition to those of settings. Several hosts are joined by commas. */
  readonly variables: ReadonlyMap<string, string>;
  /** The file of `installer-spec-file`. */
  readonly overlay: string | undefined;
  /** The install folder itself, which kURL creates in the given one. */
  readonly installDirectory: string | undefined;
  /** Flags without effect, and why. */
  readonly notes: readonly string[];
}

/** True for a flag that requires a value. */
export function takesValue(meaning: FlagMeaning): boolean {
  if (meaning.kind === 'setting') {
    const [specName = '', field = ''] = meaning.setting.split('.');
    return settingOf(specName, field)?.kind !== 'switch';
  }
  return !('value' in meaning);
}

function repeats(meaning: FlagMeaning): boolean {
  if (meaning.kind === 'setting') return meaning.setting === 'kurl.additionalNoProxyAddresses';
  return 'repeats' in meaning;
}

/** Parses flags. Throws `USAGE` with all problems at once, without values, which may be secret. */
export function readFlags(args: readonly string[]): GivenFlags {
  const wrong: string[] = [];
  const values = new Map<string, string[]>();
  for (const arg of args) {
    const [name = ''] = arg.split('=', 1);
    const value = arg.includes('=') ? arg.slice(name.length + 1) : undefined;
    const problem = flagProblem(name, value, values);
    if (problem !== undefined) wrong.push(problem);
    else values.set(name, [...(values.get(name) ?? []), value ?? '']);
  }
  const flags = wrong.length === 0 ? flagsOf(values, wrong) : undefined;
  if (flags !== undefined && wrong.length === 0) return flags;
  throw new CurlewError('USAGE', wrong.join('; '), {
    hint:
      fileHint(args) ??
      addonHint(args) ??
      'flags are those of kURL, such as: ha airgap labels=a=b; docs/kurl-compatibility.md lists them',
  });
}

/** The hint for a file name that was given without its option. */
function fileHint(args: readonly string[]): string | undefined {
  const file = args.find((arg) => /^[^=]*\.(?:tar\.gz|tgz|ya?ml)$/i.test(arg));
  if (file === undefined) return undefined;
  return `specify the file with an option: ${/l$/i.test(file) ? '--installer' : '--bundle'} ${file.slice(0, 200)}`;
}

/** The hint for the name or the folder of an add-on, or the path of anything else, as other installers take it. */
function addonHint(args: readonly string[]): string | undefined {
  const names = Object.keys(FLAGS);
  const addon = args.find(
    (arg) => /^[\w./@-]{1,200}$/.test(arg) && !names.includes(arg) && nearest(arg, names) === undefined,
  );
  if (addon === undefined) return undefined;
  return (
    'specify the packages with an option: --bundle FILE, --dir DIR, or --from STORE --installer FILE; ' +
    `curlew dev ${addon} tries the add-on in a checkout; flags are those of kURL (docs/kurl-compatibility.md)`
  );
}

function flagProblem(
  name: string,
  value: string | undefined,
  flags: ReadonlyMap<string, readonly string[]>,
): string | undefined {
  const meaning = Object.hasOwn(FLAGS, name) ? FLAGS[name] : undefined;
  if (meaning === undefined) {
    const near = nearest(name, Object.keys(FLAGS));
    return `unknown flag ${JSON.stringify(name.slice(0, 80))}${near === undefined ? '' : `, did you mean ${near}?`}`;
  }
  if (flags.has(name) && !repeats(meaning)) return `the flag ${name} is given twice`;
  if (takesValue(meaning))
    return value === undefined || value === '' ? `the flag ${name} requires a value: ${name}=…` : undefined;
  return value === undefined || ['', '1', 'true'].includes(value) ? undefined : `the flag ${name} takes no value`;
}

function flagsOf(flags: ReadonlyMap<string, readonly string[]>, wrong: string[]): GivenFlags {
  const settings: GivenFlags['settings'][number][] = [];
  const variables = new Map<string, string>();
  const notes: string[] = [];
  const special = (kind: FlagMeaning['kind']): string | undefined => {
    const [name = '', [text] = []] = [...flags].find(([one]) => FLAGS[one]?.kind === kind) ?? [];
    return text === undefined ? undefined : pathText(text, name);
  };
  for (const [name, values] of flags) {
    const meaning = FLAGS[name];
    if (meaning?.kind === 'variable') variables.set(meaning.variable, meaning.value ?? values.join(','));
    if (meaning?.kind === 'nothing') notes.push(`the flag ${name} has no effect: ${meaning.why}`);
    if (meaning?.kind !== 'setting') continue;
    const [specName = '', field = ''] = meaning.setting.split('.');
    const known = settingOf(specName, field);
    const text = takesValue(meaning) ? values.join(',') : 'true';
    const value = settingValue(known?.kind, field === 'version' ? text.replace(/^v/, '') : text);
    if ('wrong' in value) wrong.push(`the flag ${name} must be ${value.wrong}`);
    else settings.push({ specName, field, value: value.value, place: argumentPlace(`the flag ${name}`) });
  }
  const folder = special('install-directory');
  return {
    settings,
    variables,
    overlay: special('overlay'),
    installDirectory: folder === undefined ? undefined : `${folder.replace(/\/+$/, '')}/kurl`,
    notes,
  };
}

/**
 * The spec with the settings of the flags. Settings of an add-on that the spec does not have still become variables, as in
 * kURL; a version requires the add-on.
 */
export function withFlags(installer: Installer, { settings }: GivenFlags): Installer {
  return settings.reduce((changed, setting) => {
    const { specName, field, value, place } = setting;
    if (field !== 'version') {
      return withField(changed, { ...setting, value: appended(changed, specName, field, value) });
    }
    if (!changed.addons.some((addon) => addon.specName === specName)) {
      throw new CurlewError('USAGE', `the flag ${specName}-version: the spec has no ${specName}`);
    }
    const requested = typeof value === 'string' && isRequestable(value) ? value : undefined;
    if (requested === undefined) {
      throw new CurlewError('USAGE', `the flag ${specName}-version: not a version`, { hint: VERSION_FORMS });
    }
    const addons = changed.addons.map((addon) =>
      addon.specName === specName ? { ...addon, requested, requestedBy: place } : addon,
    );
    return { ...changed, addons };
  }, installer);
}

/** Appends addresses to those of the spec. */
function appended(installer: Installer, specName: string, field: string, value: Json): Json {
  if (field !== 'additionalNoProxyAddresses' || !Array.isArray(value)) return value;
  const current = installer.sections.find((section) => section.specName === specName)?.settings[field];
  return [...(Array.isArray(current) ? (current as readonly Json[]) : []), ...(value as readonly Json[])];
}
