/** Every setting of an installer spec that kURL turns into a shell variable, and what there is to say of it. */
import { SETTINGS } from '../../spec/settings.ts';
import { rows, type Row } from './rows.ts';

/** What there is to say, by `specKey.field`. */
const NOTES: Readonly<Record<string, string>> = {
  'docker.hardFailOnLoopback': 'same: `1` when it is not in the spec',
  'firewalldConfig.disableFirewalld': 'same: empty when `preserveConfig` is set',
  'kubernetes.HACluster': 'same: `1` when `loadBalancerAddress` is set',
  'selinuxConfig.disableSelinux': 'same: empty when `preserveConfig` is set',
  'weave.podCIDR':
    'same: empty, hooks after `_pre_init` find the network of the cluster there; a new one is chosen by `discover_pod_subnet`, which the install hook of kubernetes calls',
  'kubernetes.serviceCIDR':
    'same: empty, hooks after `_pre_init` find the network of the cluster there; a new one is chosen by `discover_service_subnet`, which the install hook of kubernetes calls',
  'weave.noMasqLocal': 'same: `1`, or `0` when it is false',
  'weave.isEncryptionDisabled':
    'differs: `true` gives `0`, which the add-on tests for; kURL gives `1`, so that disabling never took effect',
  'velero.namespace': 'differs: kURL writes it into `VELERO_LOCAL_BUCKET`, where by chance this or the bucket stands',
  'kurl.hostPreflights': 'same: always empty, a document is no text; preflights read it',
  'ekco.autoUpgradeSchedule': 'same: nothing listens to it any more',
};

/** `name` is `specKey.field`, `variable` the one that it fills. */
export interface SettingRow extends Row {
  readonly variable: string;
}

const FILLING = SETTINGS.flatMap(({ specName, field, variable }) => {
  return variable === undefined ? [] : [{ name: `${specName}.${field}`, variable }];
});

export const SETTING_ROWS: readonly SettingRow[] = rows(FILLING.map(({ name }) => name).join(' '), NOTES).map((row) => {
  return { ...row, variable: FILLING.find(({ name }) => name === row.name)?.variable ?? '' };
});
