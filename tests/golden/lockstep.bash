# Completions of lockstep for bash, made from its description of flags.
_lockstep_commands='train eval sample prepare recipes inspect export plot runs board doctor verify-resume run launch completion version --cmake-dir --torch-dir help'
_lockstep_recipes='atlas dit jit protein scribble tiny'
_lockstep_with_recipe='train eval sample prepare'

_lockstep_flags() {  # COMMAND RECIPE
  case "$1" in
    train) echo '--nproc-per-node --nproc --share-gpus --numa-binding --timeout --shutdown-timeout --max-restarts --recover --spares --log-dir --redirects --tee --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters --role --signals-to-handle --virtual-local-rank --nnodes --node-rank --master-addr --master-port --standalone --rdzv-endpoint --rdzv-id --rdzv-conf --rdzv-secret-file --rdzv-no-secret --rdzv-backend --local-addr --monitor-interval --start-method --use-env --event-log-handler --data_path --save_dir --resume --init_from --ignore_mismatched_sizes --no_ignore_mismatched_sizes --overwrite --no_overwrite --seed --deterministic --no_deterministic --cuda_graph --no_cuda_graph --device --precision --use_amp --no_use_amp --timeout --predict --profile --epochs --n_steps --batch_size --global_batch_size --gradient_accumulation_steps --on_oom --drop_last --no_drop_last --workers --skip_bad_samples --no_skip_bad_samples --optimizer --weight_decay --beta1 --beta2 --eps --momentum --nesterov --no_nesterov --max_grad_norm --max_skipped_steps --ema_decay --ema_warmup --no_ema_warmup --shard_optimizer --no_shard_optimizer --lr --lr_scaling --lr_schedule --warmup_steps --warmup_epochs --min_lr --lr_step_epochs --lr_gamma --plateau_patience --log_every --val_every --val_every_epochs --save_every --save_every_epochs --sample_every --keep_last --save_required --no_save_required --check_replicas_every --stop_after_steps --early_stopping_patience --early_stopping_min_delta --tensorboard --no_tensorboard --use_wandb --no_use_wandb --wandb_project --wandb_name --wandb_entity --wandb_tags --wandb_notes --wandb_exit_timeout --fast_dev_run --no_fast_dev_run --overfit_batches --limit_train_batches --limit_val_batches --distributed --no_distributed --ddp --no_ddp --local_rank --world_size --dist_url --master_addr --master_port --config --print_config --help --help_all' ;;
    eval) echo '--nproc-per-node --nproc --share-gpus --numa-binding --timeout --shutdown-timeout --max-restarts --recover --spares --log-dir --redirects --tee --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters --role --signals-to-handle --virtual-local-rank --nnodes --node-rank --master-addr --master-port --standalone --rdzv-endpoint --rdzv-id --rdzv-conf --rdzv-secret-file --rdzv-no-secret --rdzv-backend --local-addr --monitor-interval --start-method --use-env --event-log-handler --data_path --save_dir --resume --init_from --ignore_mismatched_sizes --no_ignore_mismatched_sizes --overwrite --no_overwrite --seed --deterministic --no_deterministic --cuda_graph --no_cuda_graph --device --precision --use_amp --no_use_amp --timeout --checkpoint --ema --fid --no_fid --epochs --n_steps --batch_size --global_batch_size --gradient_accumulation_steps --on_oom --drop_last --no_drop_last --workers --skip_bad_samples --no_skip_bad_samples --optimizer --weight_decay --beta1 --beta2 --eps --momentum --nesterov --no_nesterov --max_grad_norm --max_skipped_steps --ema_decay --ema_warmup --no_ema_warmup --shard_optimizer --no_shard_optimizer --lr --lr_scaling --lr_schedule --warmup_steps --warmup_epochs --min_lr --lr_step_epochs --lr_gamma --plateau_patience --log_every --val_every --val_every_epochs --save_every --save_every_epochs --sample_every --keep_last --save_required --no_save_required --check_replicas_every --stop_after_steps --early_stopping_patience --early_stopping_min_delta --tensorboard --no_tensorboard --use_wandb --no_use_wandb --wandb_project --wandb_name --wandb_entity --wandb_tags --wandb_notes --wandb_exit_timeout --fast_dev_run --no_fast_dev_run --overfit_batches --limit_train_batches --limit_val_batches --distributed --no_distributed --ddp --no_ddp --local_rank --world_size --dist_url --master_addr --master_port --config --print_config --help --help_all' ;;
    sample) echo '--nproc-per-node --nproc --share-gpus --numa-binding --timeout --shutdown-timeout --max-restarts --recover --spares --log-dir --redirects --tee --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters --role --signals-to-handle --virtual-local-rank --nnodes --node-rank --master-addr --master-port --standalone --rdzv-endpoint --rdzv-id --rdzv-conf --rdzv-secret-file --rdzv-no-secret --rdzv-backend --local-addr --monitor-interval --start-method --use-env --event-log-handler --data_path --save_dir --resume --init_from --ignore_mismatched_sizes --no_ignore_mismatched_sizes --overwrite --no_overwrite --seed --deterministic --no_deterministic --cuda_graph --no_cuda_graph --device --precision --use_amp --no_use_amp --timeout --checkpoint --ema --epochs --n_steps --batch_size --global_batch_size --gradient_accumulation_steps --on_oom --drop_last --no_drop_last --workers --skip_bad_samples --no_skip_bad_samples --optimizer --weight_decay --beta1 --beta2 --eps --momentum --nesterov --no_nesterov --max_grad_norm --max_skipped_steps --ema_decay --ema_warmup --no_ema_warmup --shard_optimizer --no_shard_optimizer --lr --lr_scaling --lr_schedule --warmup_steps --warmup_epochs --min_lr --lr_step_epochs --lr_gamma --plateau_patience --log_every --val_every --val_every_epochs --save_every --save_every_epochs --sample_every --keep_last --save_required --no_save_required --check_replicas_every --stop_after_steps --early_stopping_patience --early_stopping_min_delta --tensorboard --no_tensorboard --use_wandb --no_use_wandb --wandb_project --wandb_name --wandb_entity --wandb_tags --wandb_notes --wandb_exit_timeout --fast_dev_run --no_fast_dev_run --overfit_batches --limit_train_batches --limit_val_batches --distributed --no_distributed --ddp --no_ddp --local_rank --world_size --dist_url --master_addr --master_port --config --print_config --help --help_all' ;;
    prepare) echo '--nproc-per-node --nproc --share-gpus --numa-binding --timeout --shutdown-timeout --max-restarts --recover --spares --log-dir --redirects --tee --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters --role --signals-to-handle --virtual-local-rank --nnodes --node-rank --master-addr --master-port --standalone --rdzv-endpoint --rdzv-id --rdzv-conf --rdzv-secret-file --rdzv-no-secret --rdzv-backend --local-addr --monitor-interval --start-method --use-env --event-log-handler --config --print_config --help' ;;
    runs) echo '--json' ;;
    board) echo '--host --port --token --token-file' ;;
    doctor) echo '--json --limit --nproc-per-node --nproc --share-gpus --numa-binding --timeout --shutdown-timeout --max-restarts --recover --spares --log-dir --redirects --tee --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters --role --signals-to-handle --virtual-local-rank --nnodes --node-rank --master-addr --master-port --standalone --rdzv-endpoint --rdzv-id --rdzv-conf --rdzv-secret-file --rdzv-no-secret --rdzv-backend --local-addr --monitor-interval --start-method --use-env --event-log-handler' ;;
    verify-resume) echo '--steps --nproc-per-node --nproc --share-gpus --numa-binding --timeout --shutdown-timeout --max-restarts --recover --spares --log-dir --redirects --tee --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters --role --signals-to-handle --virtual-local-rank --nnodes --node-rank --master-addr --master-port --standalone --rdzv-endpoint --rdzv-id --rdzv-conf --rdzv-secret-file --rdzv-no-secret --rdzv-backend --local-addr --monitor-interval --start-method --use-env --event-log-handler' ;;
    run) echo '--help --nproc-per-node --nproc --share-gpus --numa-binding --timeout --shutdown-timeout --max-restarts --recover --spares --module --no-python --run-path --log-dir --redirects --tee --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters --role --signals-to-handle --virtual-local-rank --nnodes --node-rank --master-addr --master-port --standalone --rdzv-endpoint --rdzv-id --rdzv-conf --rdzv-secret-file --rdzv-no-secret --rdzv-backend --local-addr --monitor-interval --start-method --use-env --event-log-handler' ;;
    launch) echo '--help --nproc-per-node --nproc --share-gpus --numa-binding --timeout --shutdown-timeout --max-restarts --recover --spares --module --no-python --run-path --log-dir --redirects --tee --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters --role --signals-to-handle --virtual-local-rank --nnodes --node-rank --master-addr --master-port --standalone --rdzv-endpoint --rdzv-id --rdzv-conf --rdzv-secret-file --rdzv-no-secret --rdzv-backend --local-addr --monitor-interval --start-method --use-env --event-log-handler' ;;
  esac
  case "$1:$2" in
    train:atlas) echo '--vggt_checkpoint --lang_encoder_name --freeze_vggt --no_freeze_vggt --freeze_lang_encoder --no_freeze_lang_encoder --encoder_precision --geom_output_dim --fusion_hidden_dim --fusion_heads --fusion_layers --dropout --action_dim --use_pointnet --no_use_pointnet --use_pose --no_use_pose --point_stride --point_precision --gripper_range --train_split --val_split --val_fraction --image_size --use_wrist_camera --no_use_wrist_camera --cache_features --no_cache_features --cache_dir --cache_batch_size --pose_weight --gripper_weight --pose_loss_type --gripper_loss_type --save_to_file --no_save_to_file --train_log_dir --log_file --console_output --no_console_output --use_huggingface --no_use_huggingface --hf_dataset_name --hf_cache_dir --streaming --no_streaming --hf_token --wandb_save_code --no_wandb_save_code --wandb_resume --split --workspace --wrist --instruction' ;;
    train:dit) echo '--num_register_tokens --dim --depth --heads --patch --img_size --class_dropout --cfg_scales --sample_steps --num_classes --classes --copies --sample_files --fid_every --num_fid_samples --fid_weights --fid_convention --fid_stats --fid_cfg_scale --fid_steps' ;;
    train:jit) echo '--model --img_size --data_kind --sample_steps --dim --depth --heads --blr --attn_dropout --proj_dropout --num_classes --P_mean --P_std --noise_scale --t_eps --label_drop_prob --sampling_method --cfg --interval_min --interval_max --classes --copies --sample_files --fid_every --num_fid_samples --fid_weights --fid_convention --fid_stats --tokenizer_path --max_tokens --enable_condition --no_enable_condition --cond_img_size --use_chat_template --no_use_chat_template --predict_clean --no_predict_clean --prompt --show_padding --sample_tokens --num_texts' ;;
    train:protein) echo '--cache_dir --val_split --max_residues --hidden_dim --num_encoder_layers --num_decoder_layers --num_heads --k_neighbors --num_torsion_bins --dropout --mask_ratio --masking_strategy --num_iterations --split --pdb' ;;
    train:scribble) echo '--model_type --layers --numclasses --model_path --dataset --train_path --pesudo_path --distancemap_s --distancemap_c --crop_size --l_segs --l_pesudo --l_lorm --l_ds --l_dc --label_smooth --eval_scales --eval_base_size --save_path --images' ;;
    train:tiny) echo '--width --dropout --augment --no_augment --noise --train_samples --val_samples' ;;
    eval:atlas) echo '--vggt_checkpoint --lang_encoder_name --freeze_vggt --no_freeze_vggt --freeze_lang_encoder --no_freeze_lang_encoder --encoder_precision --geom_output_dim --fusion_hidden_dim --fusion_heads --fusion_layers --dropout --action_dim --use_pointnet --no_use_pointnet --use_pose --no_use_pose --point_stride --point_precision --gripper_range --train_split --val_split --val_fraction --image_size --use_wrist_camera --no_use_wrist_camera --cache_features --no_cache_features --cache_dir --cache_batch_size --pose_weight --gripper_weight --pose_loss_type --gripper_loss_type --save_to_file --no_save_to_file --train_log_dir --log_file --console_output --no_console_output --use_huggingface --no_use_huggingface --hf_dataset_name --hf_cache_dir --streaming --no_streaming --hf_token --wandb_save_code --no_wandb_save_code --wandb_resume --split --workspace --wrist --instruction' ;;
    eval:dit) echo '--num_register_tokens --dim --depth --heads --patch --img_size --class_dropout --cfg_scales --sample_steps --num_classes --classes --copies --sample_files --fid_every --num_fid_samples --fid_weights --fid_convention --fid_stats --fid_cfg_scale --fid_steps' ;;
    eval:jit) echo '--model --img_size --data_kind --sample_steps --dim --depth --heads --blr --attn_dropout --proj_dropout --num_classes --P_mean --P_std --noise_scale --t_eps --label_drop_prob --sampling_method --cfg --interval_min --interval_max --classes --copies --sample_files --fid_every --num_fid_samples --fid_weights --fid_convention --fid_stats --tokenizer_path --max_tokens --enable_condition --no_enable_condition --cond_img_size --use_chat_template --no_use_chat_template --predict_clean --no_predict_clean --prompt --show_padding --sample_tokens --num_texts' ;;
    eval:protein) echo '--cache_dir --val_split --max_residues --hidden_dim --num_encoder_layers --num_decoder_layers --num_heads --k_neighbors --num_torsion_bins --dropout --mask_ratio --masking_strategy --num_iterations --split --pdb' ;;
    eval:scribble) echo '--model_type --layers --numclasses --model_path --dataset --train_path --pesudo_path --distancemap_s --distancemap_c --crop_size --l_segs --l_pesudo --l_lorm --l_ds --l_dc --label_smooth --eval_scales --eval_base_size --save_path --images' ;;
    eval:tiny) echo '--width --dropout --augment --no_augment --noise --train_samples --val_samples' ;;
    sample:atlas) echo '--vggt_checkpoint --lang_encoder_name --freeze_vggt --no_freeze_vggt --freeze_lang_encoder --no_freeze_lang_encoder --encoder_precision --geom_output_dim --fusion_hidden_dim --fusion_heads --fusion_layers --dropout --action_dim --use_pointnet --no_use_pointnet --use_pose --no_use_pose --point_stride --point_precision --gripper_range --train_split --val_split --val_fraction --image_size --use_wrist_camera --no_use_wrist_camera --cache_features --no_cache_features --cache_dir --cache_batch_size --pose_weight --gripper_weight --pose_loss_type --gripper_loss_type --save_to_file --no_save_to_file --train_log_dir --log_file --console_output --no_console_output --use_huggingface --no_use_huggingface --hf_dataset_name --hf_cache_dir --streaming --no_streaming --hf_token --wandb_save_code --no_wandb_save_code --wandb_resume --split --workspace --wrist --instruction' ;;
    sample:dit) echo '--num_register_tokens --dim --depth --heads --patch --img_size --class_dropout --cfg_scales --sample_steps --num_classes --classes --copies --sample_files --fid_every --num_fid_samples --fid_weights --fid_convention --fid_stats --fid_cfg_scale --fid_steps' ;;
    sample:jit) echo '--model --img_size --data_kind --sample_steps --dim --depth --heads --blr --attn_dropout --proj_dropout --num_classes --P_mean --P_std --noise_scale --t_eps --label_drop_prob --sampling_method --cfg --interval_min --interval_max --classes --copies --sample_files --fid_every --num_fid_samples --fid_weights --fid_convention --fid_stats --tokenizer_path --max_tokens --enable_condition --no_enable_condition --cond_img_size --use_chat_template --no_use_chat_template --predict_clean --no_predict_clean --prompt --show_padding --sample_tokens --num_texts' ;;
    sample:protein) echo '--cache_dir --val_split --max_residues --hidden_dim --num_encoder_layers --num_decoder_layers --num_heads --k_neighbors --num_torsion_bins --dropout --mask_ratio --masking_strategy --num_iterations --split --pdb' ;;
    sample:scribble) echo '--model_type --layers --numclasses --model_path --dataset --train_path --pesudo_path --distancemap_s --distancemap_c --crop_size --l_segs --l_pesudo --l_lorm --l_ds --l_dc --label_smooth --eval_scales --eval_base_size --save_path --images' ;;
    sample:tiny) echo '--width --dropout --augment --no_augment --noise --train_samples --val_samples' ;;
    prepare:atlas) echo '--vggt_checkpoint --lang_encoder_name --freeze_vggt --no_freeze_vggt --freeze_lang_encoder --no_freeze_lang_encoder --encoder_precision --geom_output_dim --fusion_hidden_dim --fusion_heads --fusion_layers --dropout --action_dim --use_pointnet --no_use_pointnet --use_pose --no_use_pose --point_stride --point_precision --gripper_range --train_split --val_split --val_fraction --image_size --use_wrist_camera --no_use_wrist_camera --cache_features --no_cache_features --cache_dir --cache_batch_size --pose_weight --gripper_weight --pose_loss_type --gripper_loss_type --save_to_file --no_save_to_file --train_log_dir --log_file --console_output --no_console_output --use_huggingface --no_use_huggingface --hf_dataset_name --hf_cache_dir --streaming --no_streaming --hf_token --wandb_save_code --no_wandb_save_code --wandb_resume --split --workspace --wrist --instruction' ;;
    prepare:protein) echo '--pdb_dir --output_dir --num_workers --train_ratio --val_ratio --test_ratio --seed --use_mmcif --no_use_mmcif --no_filter --no_no_filter --max_resolution --min_residues --max_residues --max_ca_distance --max_breaks' ;;
    prepare:scribble) echo '--dataset_path --train_path --pesudo_path --distancemap_s --distancemap_c --lambda_s --lambda_c --workers --overwrite --no_overwrite' ;;
  esac
}

_lockstep_values() {  # RECIPE FLAG
  case "$1:$2" in
    *:--device) echo 'auto cpu cuda' ;;
    *:--precision) echo 'auto auto16 fp32 tf32 bf16 fp16 fp64' ;;
    *:--on_oom) echo 'fail halve halve_anyway' ;;
    *:--optimizer) echo 'adamw adam sgd' ;;
    *:--lr_scaling) echo 'none linear sqrt' ;;
    *:--lr_schedule) echo 'constant linear cosine step plateau' ;;
    atlas:--encoder_precision) echo 'auto fp32 bf16 fp16' ;;
    atlas:--point_precision) echo 'fp32 bf16 fp16' ;;
    atlas:--gripper_range) echo 'auto zero_one minus_one_one' ;;
    atlas:--pose_loss_type) echo 'smooth_l1 l1 l2' ;;
    atlas:--gripper_loss_type) echo 'l1 bce' ;;
    dit:--sample_files) echo 'grid single' ;;
    dit:--fid_convention) echo 'pytorch-fid torch-fidelity' ;;
    jit:--data_kind) echo 'auto text images' ;;
    jit:--sampling_method) echo 'heun euler' ;;
    jit:--sample_files) echo 'grid single' ;;
    jit:--fid_convention) echo 'pytorch-fid torch-fidelity' ;;
    protein:--masking_strategy) echo 'random block' ;;
    protein:--split) echo 'val test' ;;
    scribble:--model_type) echo 'res50_ASPP_lorm deeplabv2 deeplabv3p deeplabv3p_lorm' ;;
    scribble:--dataset) echo 'ScribbleOnly PseudoOnly ScribblePseudo ScribblePseudoDs ScribblePseudoDc ScribblePseudoDsDc SBD_pesudo_distancemap' ;;
  esac
}

_lockstep() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} recipe='' word
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "$_lockstep_commands" -- "$cur"))
    return
  fi
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for word in "${COMP_WORDS[@]:2:COMP_CWORD - 2}"; do
    if [[ " $_lockstep_recipes " == *" $word "* ]]; then
      recipe=$word
      break
    fi
  done
  if [[ $prev == --* ]]; then
    word=${prev#--}
    word=$(_lockstep_values "$recipe" "--${word//-/_}")
    if [[ -n $word ]]; then
      COMPREPLY=($(compgen -W "$word" -- "$cur"))
      return
    fi
  fi
  if [[ $cur == -* ]]; then
    word=$(_lockstep_flags "$command" "$recipe")
    COMPREPLY=($(compgen -W "$word" -- "$cur"))
  elif [[ $command == completion ]]; then
    COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur"))
  elif [[ -z $recipe && $prev != -* ]] &&
    [[ " $_lockstep_with_recipe " == *" $command "* ]]; then
    COMPREPLY=($(compgen -W "$_lockstep_recipes" -- "$cur"))
  fi
}

complete -o default -F _lockstep lockstep
