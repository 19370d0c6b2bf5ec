/** Every setting of an installer spec that kURL turns into a shell variable, with notes. */
import { SETTINGS } from '../../spec/settings.ts';
import { rows, type Row } from './rows.ts';

/** By `specKey.field`. */
const NOTES: Readonly<Record<string, string>> = {
  'docker.hardFailOnLoopback': 'same: `1` if the spec does not set it',
  'firewalldConfig.disableFirewalld': 'same: empty if `preserveConfig` is set',
  'kubernetes.HACluster': 'same: `1` if `loadBalancerAddress` is set',
  'selinuxConfig.disableSelinux': 'same: empty if `preserveConfig` is set',
  'weave.podCIDR':
    'same: if empty, it has the network of the cluster in hooks after `_pre_init`; `discover_pod_subnet`, which the install hook of kubernetes calls, chooses a new one',
  'kubernetes.serviceCIDR':
    'same: if empty, it has the network of the cluster in hooks after `_pre_init`; `discover_service_subnet`, which the install hook of kubernetes calls, chooses a new one',
  'weave.noMasqLocal': 'same: `1`, or `0` if it is false',
  'weave.isEncryptionDisabled':
    'differs: `true` gives `0`, which the add-on checks for; kURL gives `1`, so disabling never takes effect',
  'velero.namespace':
    'differs: kURL writes it into `VELERO_LOCAL_BUCKET`, which unpredictably has this value or the bucket',
  'kurl.hostPreflights': 'same: always empty because it is a document; preflights read it',
  'ekco.autoUpgradeSchedule': 'same: nothing reads it anymore',
};

/** `name` is `specKey.field`, `variable` the shell variable that it sets. */
export interface SettingRow extends Row {
  readonly variable: string;
}

const FILLING = SETTINGS.flatMap(({ specName, field, variable }) => {
  return variable === undefined ? [] : [{ name: `${specName}.${field}`, variable }];
});

export const SETTING_ROWS: readonly SettingRow[] = rows(FILLING.map(({ name }) => name).join(' '), NOTES).map((row) => {
  return { ...row, variable: FILLING.find(({ name }) => name === row.name)?.variable ?? '' };
});
