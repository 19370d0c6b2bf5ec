# shellcheck shell=bash
# Prerequisites of nodes for mounting network volumes.

# usage: curlew_storage_client FOLDER UNIT RPM-NAME DEB-NAME
# Installs the package if systemd does not have the unit, and starts the unit.
curlew_storage_client() {
  if ! systemctl cat "$2" >/dev/null 2>&1; then
    if [[ -z "${LSB_DIST-}" ]]; then detectLsbDist; fi
    if ! host_packages_shipped; then
      ensure_host_package "$3" "$4"
    elif [[ "$LSB_DIST" == ubuntu || "$LSB_DIST" == debian ]]; then
      dpkg_install_host_archives "$1" "$4"
    else
      yum_install_host_archives "$1" "$3"
    fi
  fi
  curlew_start_service "$2"
}

# usage: install_nfs_utils_if_missing_common FOLDER
install_nfs_utils_if_missing_common() {
  curlew_storage_client "$1" nfs-utils nfs-utils nfs-common
}

# usage: longhorn_install_iscsi_if_missing_common FOLDER
longhorn_install_iscsi_if_missing_common() {
  curlew_storage_client "$1" iscsid iscsi-initiator-utils open-iscsi
}

# usage: longhorn_host_init_common FOLDER
longhorn_host_init_common() {
  longhorn_install_iscsi_if_missing_common "$1"
  install_nfs_utils_if_missing_common "$1"
  mkdir -p /var/lib/longhorn
  chmod 700 /var/lib/longhorn
}
